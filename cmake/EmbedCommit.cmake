# Puts the commit of SOURCE where TEMPLATE has it, and writes OUT if that is something new: nothing
# where there is no repository. Run with every build, because a commit changes no source.
set(WEIR_COMMIT "")
find_program(git git)
if(git AND EXISTS ${SOURCE}/.git)
  execute_process(COMMAND ${git} -C ${SOURCE} describe --always --exclude=* --abbrev=12
                          "--dirty= with changes"
                  OUTPUT_VARIABLE WEIR_COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
configure_file(${TEMPLATE} ${OUT} @ONLY)
