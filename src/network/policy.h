// Converts an assignment policy of a network scenario to the policy of the farm's dispatch.
#pragma once

#include "dispatch/node_choice.h"
#include "network/types.h"

namespace rodeo::network {

inline dispatch::Policy policy_of(Assignment assignment) {
  switch (assignment) {
    case Assignment::round_robin: return dispatch::Policy::round_robin;
    case Assignment::random: return dispatch::Policy::random;
    case Assignment::least_loaded: break;
  }
  return dispatch::Policy::least_loaded;
}

}  // namespace rodeo::network
