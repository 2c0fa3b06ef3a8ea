// Traffic control over rtnetlink, where `tc` does not suffice: attaches a loaded eBPF program by its descriptor (`tc` needs
// a file), and reads a queue's drops as numbers. Every call acts in the network namespace of the calling thread.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"

namespace rodeo::network::laboratory {

enum class Hook : unsigned char { ingress, egress };

/// Adds a clsact queueing discipline to a link if there is none, and attaches the program to one of its hooks. Error
/// network.laboratory.
Result<void> attach_classifier(const std::string& link, Hook hook, int program);

/// Drops of the root queueing discipline of a link.
Result<std::uint64_t> queue_drops(const std::string& link);

}  // namespace rodeo::network::laboratory
