# The Debian package of the program: cmake --build --preset package --target package, or cpack in the
# build folder. It holds what COMPONENT program installs; headers and libraries are not in it.
if(NOT TARGET weir_program)
  return()
endif()

set(packaging ${PROJECT_SOURCE_DIR}/packaging)
set(packed ${PROJECT_BINARY_DIR}/packaging)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "Weir maintainers <maintainers@weir.example>")
set(CPACK_PACKAGE_VENDOR "Weir")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL program)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME weir)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "adduser, tzdata")
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "rate limiter for everything that takes requests")
set(CPACK_DEBIAN_PROGRAM_DESCRIPTION
"Weir decides which requests may pass, by the rules of a policy file: token
buckets, windows, logs, queues and concurrency, for addresses, users, keys or
anything else that a request carries. Its service answers over HTTP, over the
protocol of Redis and over gRPC, Envoy's rate limit service included; its
state is in memory, or shared with other machines through Redis or Valkey.")
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA
    ${packaging}/debian/conffiles ${packaging}/debian/postinst ${packaging}/debian/prerm
    ${packaging}/debian/postrm)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

# Everything of a package has the time of the last change, so that the same source gives the same one.
set(WEIR_PACKAGE_EPOCH $ENV{SOURCE_DATE_EPOCH})
if(NOT WEIR_PACKAGE_EPOCH)
  execute_process(COMMAND git -C ${PROJECT_SOURCE_DIR} log -1 --format=%ct
                  OUTPUT_VARIABLE WEIR_PACKAGE_EPOCH OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
if(NOT WEIR_PACKAGE_EPOCH)
  set(WEIR_PACKAGE_EPOCH 0)
endif()
execute_process(COMMAND date -u -R -d @${WEIR_PACKAGE_EPOCH}
                OUTPUT_VARIABLE WEIR_PACKAGE_DATE OUTPUT_STRIP_TRAILING_WHITESPACE)

function(weir_compress source target)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
  execute_process(COMMAND gzip -9nc INPUT_FILE ${source} OUTPUT_FILE ${target}
                  COMMAND_ERROR_IS_FATAL ANY)
endfunction()
file(MAKE_DIRECTORY ${packed})
weir_compress(${packaging}/weir.1 ${packed}/weir.1.gz)
weir_compress(${PROJECT_SOURCE_DIR}/CHANGELOG.md ${packed}/changelog.gz)
configure_file(${packaging}/debian/changelog.in ${packed}/changelog.Debian @ONLY)
weir_compress(${packed}/changelog.Debian ${packed}/changelog.Debian.gz)

# Only for packages: who installs into a folder of their own wants none of it.
function(weir_pack destination)
  install(FILES ${ARGN} DESTINATION ${destination} COMPONENT program EXCLUDE_FROM_ALL)
endfunction()
weir_pack(/etc/weir ${packaging}/weir.yaml)
weir_pack(/lib/systemd/system ${packaging}/systemd/weir.service ${packaging}/systemd/weir.socket)
weir_pack(share/man/man1 ${packed}/weir.1.gz)
install(FILES ${packaging}/completion/weir.bash DESTINATION share/bash-completion/completions
        RENAME weir COMPONENT program EXCLUDE_FROM_ALL)
weir_pack(share/zsh/vendor-completions ${packaging}/completion/_weir)
weir_pack(share/fish/vendor_completions.d ${packaging}/completion/weir.fish)
weir_pack(share/doc/weir ${packaging}/debian/copyright ${packed}/changelog.gz
          ${packed}/changelog.Debian.gz ${PROJECT_SOURCE_DIR}/README.md)
file(GLOB examples CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/examples/policies/*.yaml)
weir_pack(share/doc/weir/examples ${examples})
file(GLOB scenarios CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/examples/scenarios/*.yaml)
weir_pack(share/doc/weir/examples/scenarios ${scenarios})
foreach(folder docs docs/img docs/algorithms docs/algorithms/img docs/decisions)
  file(GLOB pages CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.md
       ${PROJECT_SOURCE_DIR}/${folder}/*.svg)
  weir_pack(share/doc/weir/${folder} ${pages})
endforeach()
weir_pack(share/weir ${PROJECT_SOURCE_DIR}/docs/alerts.yaml
          ${PROJECT_SOURCE_DIR}/docs/weir.schema.json)
weir_pack(share/weir/grafana ${PROJECT_SOURCE_DIR}/docs/grafana/weir.json)

include(CPack)
