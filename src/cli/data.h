// The verbs of `rodeo data` that live in files of their own, and what other nouns share with them.
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

/// The tree of an event for programs.
Json dump_json(const formats::DumpNode& root);

/// Event files that were made: for programs, and for people.
Json files_json(const std::vector<FragmentConsumer::File>& files);
void print_files(const std::vector<FragmentConsumer::File>& files);

/// Talk on stderr, for people: "note: ...".
void print_note(const std::string& text);

}  // namespace rodeo::cli
