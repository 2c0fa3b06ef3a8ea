# Script: writes OUTPUT, a header with the git revision of SOURCE and its date, and writes it only when these have changed. Without git the
# date is today's, or that of SOURCE_DATE_EPOCH.
execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=12
  OUTPUT_VARIABLE revision OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed)
  set(revision "unknown")
endif()
execute_process(COMMAND git -C ${SOURCE} log -1 --format=%cs
  OUTPUT_VARIABLE date OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed)
  string(TIMESTAMP date "%Y-%m-%d" UTC)
endif()
file(WRITE ${OUTPUT}.new "#pragma once\n#define RODEO_REVISION \"${revision}\"\n#define RODEO_DATE \"${date}\"\n")
file(COPY_FILE ${OUTPUT}.new ${OUTPUT} ONLY_IF_DIFFERENT)
