// The verbs of `rodeo data` that have their own files, and the functions that other nouns share.
#pragma once

#include "cli/command.h"
#include "formats/event_dump.h"
#include "rodeo/consumer.h"

namespace rodeo::cli {

void add_data_dump(Command& data);
void add_data_verify(Command& data);
void add_data_recover(Command& data);
void add_data_record(Command& data);
void add_data_merge(Command& data);
void add_data_filter(Command& data);
void add_data_diff(Command& data);
void add_data_convert(Command& data);

/// The tree of an event as JSON.
Json dump_json(const formats::DumpNode& root);

/// New event files: for programs, and for people.
Json files_json(const std::vector<FragmentConsumer::File>& files);
void print_files(const std::vector<FragmentConsumer::File>& files);

/// Prints "note: ..." on stderr, for people.
void print_note(const std::string& text);

}  // namespace rodeo::cli
