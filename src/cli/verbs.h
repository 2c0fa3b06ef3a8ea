// One function for each noun, which adds the noun with its verbs to the command. Defined in the file of the noun's name,
// called by main.cpp.
#pragma once

#include "cli/command.h"

namespace rodeo::cli {

void add_bench(Command& root);
Command& add_card(Command& root);
void add_check(Command& root);
void add_completion(Command& root);
void add_control(Command& root);
void add_data(Command& root);
void add_demo(Command& root);
void add_docs(Command& root);
void add_doctor(Command& root);
void add_emulate(Command& root);
void add_events(Command& root);
void add_explain(Command& root);
void add_farm(Command& root);
void add_man(Command& root);
void add_net(Command& root);
void add_plugin(Command& root);
void add_readout(Command& root);
void add_route(Command& root);
void add_runs(Command& root);
void add_top(Command& root);
void add_version(Command& root);

// Verbs of `rodeo plugin` that have their own files.
void add_plugin_new(Command& plugin);
void add_plugin_test(Command& plugin);

}  // namespace rodeo::cli
