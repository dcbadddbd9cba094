// Every statement of the store, by name; their text is in statements.sql.inc.
#pragma once

#include "stores/sqlite/database.hpp"

#include <string_view>

namespace holdfast::sqlite {

// The text of one; empty if there is none of that name.
std::string_view statement_text(std::string_view name) noexcept;

// Belongs to its connection.
struct statements {
  explicit statements(database& connection) : owner(connection) {}

  database& owner;

  statement begin{owner, statement_text("begin")};
  statement commit{owner, statement_text("commit")};
  statement begin_read{owner, statement_text("begin_read")};
  statement meta{owner, statement_text("meta")};
  statement set_floor{owner, statement_text("set_floor")};
  statement set_boot{owner, statement_text("set_boot")};
  statement client{owner, statement_text("client")};
  statement clients{owner, statement_text("clients")};
  statement insert_client{owner, statement_text("insert_client")};
  statement delete_all_clients{owner, statement_text("delete_all_clients")};
  statement delete_client{owner, statement_text("delete_client")};
  statement resource{owner, statement_text("resource")};
  statement resource_named{owner, statement_text("resource_named")};
  statement insert_resource{owner, statement_text("insert_resource")};
  statement update_resource{owner, statement_text("update_resource")};
  statement exchange_resource{owner, statement_text("exchange_resource")};
  statement delete_resource{owner, statement_text("delete_resource")};
  statement resources_from{owner, statement_text("resources_from")};
  statement resources_named{owner, statement_text("resources_named")};
  statement greatest_last{owner, statement_text("greatest_last")};
  statement claim{owner, statement_text("claim")};
  statement insert_claim{owner, statement_text("insert_claim")};
  statement delete_claim{owner, statement_text("delete_claim")};
  statement delete_line{owner, statement_text("delete_line")};
  statement delete_all_claims{owner, statement_text("delete_all_claims")};
  statement claims{owner, statement_text("claims")};
  statement before{owner, statement_text("before")};
  statement after{owner, statement_text("after")};
  statement holding_clients{owner, statement_text("holding_clients")};
  statement resources_of_client{owner, statement_text("resources_of_client")};
  statement waits_of_client{owner, statement_text("waits_of_client")};
  statement observers{owner, statement_text("observers")};
  statement insert_observer{owner, statement_text("insert_observer")};
  statement delete_observer{owner, statement_text("delete_observer")};
  statement delete_all_observers{owner, statement_text("delete_all_observers")};
  statement delete_observers_of{owner, statement_text("delete_observers_of")};
  statement latch{owner, statement_text("latch")};
  statement set_latch{owner, statement_text("set_latch")};
  statement delete_latch{owner, statement_text("delete_latch")};
  statement latch_change{owner, statement_text("latch_change")};
  statement insert_latch_change{owner, statement_text("insert_latch_change")};
  statement end_latch_changes{owner, statement_text("end_latch_changes")};
  statement forget_latch_changes{owner, statement_text("forget_latch_changes")};
  statement delete_latch_changes{owner, statement_text("delete_latch_changes")};
};

}  // namespace holdfast::sqlite
