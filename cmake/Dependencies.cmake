# Every third-party library, found once. System packages first; what Debian lacks is unpacked under .deps/ by tools/setup.
set(OUTRIGGER_DEPS "${PROJECT_SOURCE_DIR}/.deps" CACHE PATH "Where tools/setup unpacks what the system has not")

find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(Boost 1.74 REQUIRED) # its headers
find_package(OpenSSL 3.0 REQUIRED)
find_package(spdlog REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(CLI11 REQUIRED)
find_package(prometheus-cpp REQUIRED)
find_package(JPEG REQUIRED)
find_package(PNG REQUIRED)
find_package(CURL REQUIRED)
pkg_check_modules(HTTPLIB REQUIRED IMPORTED_TARGET cpp-httplib)
pkg_check_modules(ARCHIVE REQUIRED IMPORTED_TARGET libarchive)
pkg_check_modules(HWY REQUIRED IMPORTED_TARGET libhwy)
find_library(GLOO_LIBRARY gloo REQUIRED)
find_path(GLOO_INCLUDE gloo/context.h REQUIRED)
add_library(gloo_gloo INTERFACE)
target_include_directories(gloo_gloo SYSTEM INTERFACE "${GLOO_INCLUDE}")
target_link_libraries(gloo_gloo INTERFACE "${GLOO_LIBRARY}" Threads::Threads)

# oneDNN 3.x: the system's where it is new enough (Debian 13), else the unpacked wheels.
find_package(dnnl 3.2 QUIET CONFIG)
if(dnnl_FOUND)
  add_library(onednn ALIAS DNNL::dnnl)
else()
  find_library(ONEDNN_LIBRARY NAMES libdnnl.so.3 PATHS "${OUTRIGGER_DEPS}/onednn/lib" NO_DEFAULT_PATH REQUIRED)
  add_library(onednn SHARED IMPORTED)
  set_target_properties(onednn PROPERTIES
    IMPORTED_LOCATION "${ONEDNN_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${OUTRIGGER_DEPS}/onednn/include")
endif()

if(OUTRIGGER_BUILD_TESTS)
  find_package(GTest REQUIRED)
endif()
if(OUTRIGGER_BUILD_BENCH)
  find_package(benchmark REQUIRED)
endif()
