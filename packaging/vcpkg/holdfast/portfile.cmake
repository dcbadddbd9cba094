# An overlay port: vcpkg install holdfast --overlay-ports=<this source>/packaging/vcpkg
# It builds the source that it is a part of.
get_filename_component(SOURCE_PATH "${CURRENT_PORT_DIR}/../../.." ABSOLUTE)

vcpkg_check_features(OUT_FEATURE_OPTIONS engines
  FEATURES
    sqlite HOLDFAST_SQLITE
    redis HOLDFAST_REDIS
    postgresql HOLDFAST_POSTGRESQL
    mariadb HOLDFAST_MARIADB
    zookeeper HOLDFAST_ZOOKEEPER
    etcd HOLDFAST_ETCD)

vcpkg_cmake_configure(SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS ${engines} -DHOLDFAST_PROGRAM=OFF -DHOLDFAST_TESTS=OFF -DHOLDFAST_EXAMPLES=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(PACKAGE_NAME holdfast CONFIG_PATH lib/cmake/holdfast)
vcpkg_fixup_pkgconfig()

file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
