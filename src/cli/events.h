// The verbs of `rodeo events` that have their own files, and their common parts.
#pragma once

#include "cli/command.h"
#include "readout/consumer/event_subscriber.h"

namespace rodeo::cli {

void add_events_monitor(Command& events);
void add_events_record(Command& events);

/// Adds the options for the source of events on the network.
void add_event_source(Command& command, readout::EventSubscriberSettings& from);

}  // namespace rodeo::cli
