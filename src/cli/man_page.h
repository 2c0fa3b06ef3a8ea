// Manual pages from the tree of verbs: one for the command, one for each noun with all verbs below it.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"

namespace rodeo::cli {

struct ManualPage {
  std::string file;  ///< "rodeo-card.1"
  std::string text;  ///< in man(7)'s macros, ASCII
};

/// `date` and `version` are for header and footer. Call root.describe() first.
std::vector<ManualPage> manual_pages(const Command& root, const std::string& version, const std::string& date);

/// Escapes plain text so that roff prints it unchanged.
std::string roff_text(std::string_view text);

}  // namespace rodeo::cli
