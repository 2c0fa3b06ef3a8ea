// The verbs of `rodeo events` that live in files of their own, and what it shares with the others.
#pragma once

#include "cli/command.h"
#include "readout/consumer/event_subscriber.h"

namespace rodeo::cli {

void add_events_monitor(Command& events);
void add_events_record(Command& events);

/// Options that say where on the network events come from.
void add_event_source(Command& command, readout::EventSubscriberSettings& from);

}  // namespace rodeo::cli
