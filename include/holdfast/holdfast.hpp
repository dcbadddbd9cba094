// Everything but <holdfast/asio.hpp>.
#pragma once

#include <holdfast/awaitable.hpp>
#include <holdfast/client.hpp>
#include <holdfast/election.hpp>
#include <holdfast/inspection.hpp>
#include <holdfast/latch.hpp>
#include <holdfast/lease.hpp>
#include <holdfast/metrics.hpp>
#include <holdfast/multi_lock.hpp>
#include <holdfast/mutex.hpp>
#include <holdfast/observer.hpp>
#include <holdfast/options.hpp>
#include <holdfast/recursive_mutex.hpp>
#include <holdfast/result.hpp>
#include <holdfast/semaphore.hpp>
#include <holdfast/shared_mutex.hpp>
