// The verbs of `rodeo data` that live in files of their own.
#pragma once

#include "cli/command.h"

namespace rodeo::cli {

void add_data_dump(Command& data);
void add_data_verify(Command& data);
void add_data_recover(Command& data);

/// Talk on stderr, for people: "note: ...".
void print_note(const std::string& text);

}  // namespace rodeo::cli
