// The files that `rodeo plugin new` writes, from src/cli/plugin_template/.
#pragma once

#include <string_view>
#include <vector>

namespace rodeo::cli {

/// A file of the template. __NAME__ in its name and text stands for the name of the plug-in.
struct TemplateFile {
  std::string_view name;
  std::string_view text;
};

enum class PluginKind : unsigned char {
  detector,  ///< extractor, checker, re-stamping
  input,     ///< a UDP input, with extractor and checker
  consumer,  ///< a TCP consumer
};

std::vector<TemplateFile> plugin_template(PluginKind kind);

}  // namespace rodeo::cli
