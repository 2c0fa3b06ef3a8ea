// Traffic control over rtnetlink, for what `tc` can do only with files: attaching a loaded eBPF program by its descriptor, and reading a
// queue's drops as numbers. Every call acts in the network namespace of the calling thread.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"

namespace rodeo::network::laboratory {

enum class Hook : unsigned char { ingress, egress };

/// Adds a clsact queueing discipline to a link, if it has none, and the program to one of its hooks. Error network.laboratory.
Result<void> attach_classifier(const std::string& link, Hook hook, int program);

/// What the root queueing discipline of a link has dropped.
Result<std::uint64_t> queue_drops(const std::string& link);

}  // namespace rodeo::network::laboratory
