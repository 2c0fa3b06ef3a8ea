# Script: writes OUTPUT, a header with the git revision of SOURCE, and touches it only when the revision has changed.
execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=12
  OUTPUT_VARIABLE revision OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed)
  set(revision "unknown")
endif()
file(WRITE ${OUTPUT}.new "#pragma once\n#define RODEO_REVISION \"${revision}\"\n")
file(COPY_FILE ${OUTPUT}.new ${OUTPUT} ONLY_IF_DIFFERENT)
