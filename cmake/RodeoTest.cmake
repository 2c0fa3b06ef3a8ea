# What all kinds of tests share: one scale for time-outs (sanitizers are slow; a test never says so itself), and the environment.
if(RODEO_SANITIZE MATCHES "thread")
  set(scale 10)
elseif(RODEO_SANITIZE)
  set(scale 5)
else()
  set(scale 1)
endif()
set(RODEO_TEST_TIMEOUT_SCALE ${scale} CACHE STRING "Every time-out in tests is multiplied by this")

# One variable only: gtest_discover_tests takes no list here.
set(RODEO_TEST_ENVIRONMENT RODEO_TEST_TIMEOUT_SCALE=${RODEO_TEST_TIMEOUT_SCALE})

# Seconds are for an undisturbed release build.
function(rodeo_test_timeout test seconds)
  math(EXPR scaled "${seconds} * ${RODEO_TEST_TIMEOUT_SCALE}")
  set_tests_properties(${test} PROPERTIES TIMEOUT ${scaled} ENVIRONMENT "${RODEO_TEST_ENVIRONMENT}")
  if(ARGN)
    set_tests_properties(${test} PROPERTIES LABELS "${ARGN}")
  endif()
endfunction()
