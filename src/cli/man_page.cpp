#include "cli/man_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace rodeo::cli {
namespace {

struct Environment {
  const char* name;
  const char* says;
};

constexpr Environment kEnvironment[] = {
    {"RODEO_LOG", "The log level on stderr: debug, info, warning, error, off. --log overrides it."},
    {"RODEO_RUNTIME_DIR",
     "The directory of sockets and locks, instead of $XDG_RUNTIME_DIR/rodeo or /tmp/rodeo-UID. All processes of a system "
     "need the same directory."},
    {"RODEO_PLUGIN_PATH", "Directories to search first for plug-ins, separated by colons."},
    {"RODEO_PYTHON", "The Python interpreter, instead of that of rodeo-python-packages(8), or python3."},
    {"RODEO_OPERATOR", "Your name in the control room, instead of your login name."},
    {"RODEO_DATABASE", "The run database that rodeo runs reads."},
    {"RODEO_<TABLE>_<KEY>", "A key of the configuration, in capitals: rodeo explain KEY names the variable."},
    {"RODEO_CPU_LEVEL", "v2 disables the kernels for AVX2 and AVX-512."},
    {"NO_COLOR", "No colours."},
};

std::string upper(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

std::string dashed(std::string path) {
  std::ranges::replace(path, ' ', '-');
  return path;
}

/// The usage line with a verb's arguments, as in --help; literal words are bold.
std::string synopsis(const Command& command, const std::string& path) {
  std::string text = fmt::format("\\fB{}\\fR", roff_text(path));
  if (!command.has_action() && !command.verbs().empty()) return text + " \\fIVERB\\fR";
  text += " [\\fIoptions\\fR]";
  for (const auto& option : command.options()) {
    if (!option->positional()) continue;
    const std::string name = fmt::format("\\fI{}\\fR{}", roff_text(option->names().front()), option->is_many() ? "..." : "");
    text += option->is_required() ? " " + name : " [" + name + "]";
  }
  return text;
}

std::string option_entry(const Option& option) {
  std::string left;
  for (const std::string& name : option.names()) {
    left += left.empty() ? "" : ", ";
    left += fmt::format("\\f{}{}\\fR", option.positional() ? 'I' : 'B', roff_text(name));
  }
  if (!option.is_flag() && !option.positional())
    left += fmt::format("{}\\fI{}\\fR", option.may_stand_alone() ? "" : " ", roff_text(option.value_name()));
  std::string right = option.help();
  if (option.is_required()) right += " (required)";
  if (!option.fallback().empty()) right += fmt::format(" (default {})", option.fallback());
  if (option.is_many() && !option.positional()) right += " (may be repeated)";
  return fmt::format(".TP\n{}\n{}\n", left, roff_text(right));
}

std::string examples(const Command& command) {
  std::string text;
  for (const auto& [line, says] : command.examples())
    text += fmt::format(".TP\n\\fB{}\\fR\n{}\n", roff_text(line), roff_text(says));
  return text;
}

/// A verb and those below it, one section for each.
std::string sections(const Command& command, const std::string& path) {
  std::string text;
  // Verbs that another program reads have no action here.
  if (command.has_action() || command.verbs().empty()) {
    text += fmt::format(".SS \"{}\"\n{}\n.PP\n{}\n", roff_text(path), synopsis(command, path), roff_text(command.help()));
    for (const auto& option : command.options()) text += option_entry(*option);
    for (const std::string& paragraph : command.paragraphs()) text += fmt::format(".PP\n{}\n", roff_text(paragraph));
    if (const std::string shown = examples(command); !shown.empty()) text += ".PP\nExamples:\n" + shown;
  }
  for (const auto& verb : command.verbs()) text += sections(*verb, path + " " + verb->name());
  return text;
}

std::string head(const std::string& path, const std::string& help, const std::string& version, const std::string& date) {
  std::string sentence = help.substr(0, help.find_first_of(".\n"));
  return fmt::format(
      ".\\\" Made by `rodeo man` from the tree of verbs.\n.TH {} 1 {} \"Rodeo {}\" Rodeo\n.SH NAME\n{} \\- {}\n",
      upper(dashed(path)), date, version, dashed(path), roff_text(sentence));
}

std::string common_section() {
  std::string text = ".SH COMMON OPTIONS\n";
  for (const auto& option : common_options()) text += option_entry(*option);
  return text + fmt::format(".SH EXIT STATUS\n{}.\n", roff_text(exit_status_text()));
}

std::string noun_page(const Command& noun, const std::string& path, const std::string& version, const std::string& date) {
  std::string text = head(path, noun.help(), version, date) + ".SH SYNOPSIS\n" + synopsis(noun, path) + "\n";
  if (!noun.verbs().empty()) text += fmt::format(".br\n\\fB{}\\fR \\fIVERB\\fR [\\fIoptions\\fR]\n", roff_text(path));
  text += fmt::format(".SH DESCRIPTION\n{}.\n", roff_text(noun.help().substr(0, noun.help().find_last_not_of('.') + 1)));
  if (!noun.has_action()) {
    if (const std::string shown = examples(noun); !shown.empty()) text += ".SS Examples\n" + shown;
    for (const std::string& paragraph : noun.paragraphs()) text += fmt::format(".PP\n{}\n", roff_text(paragraph));
  }
  text += ".SH COMMANDS\n" + sections(noun, path);
  return text + common_section() + ".SH SEE ALSO\n.BR rodeo (1)\n";
}

std::string root_page(const Command& root, const std::string& version, const std::string& date) {
  std::string text = head(root.name(), "software readout for physics experiments", version, date);
  text += fmt::format(".SH SYNOPSIS\n\\fB{}\\fR \\fIVERB\\fR [\\fIoptions\\fR]\n.SH DESCRIPTION\n{}\n.SH COMMANDS\n",
                      root.name(), roff_text(root.help()));
  std::string also;
  for (const auto& verb : root.verbs()) {
    text += fmt::format(".TP\n\\fB{} {}\\fR\n{}.\n", root.name(), verb->name(), roff_text(verb->help()));
    also += fmt::format("{}.BR {}\\-{} (1)", also.empty() ? "" : " ,\n", root.name(), verb->name());
  }
  text += common_section() + ".SH ENVIRONMENT\n";
  for (const Environment& one : kEnvironment)
    text += fmt::format(".TP\n.B {}\n{}\n", roff_text(one.name), roff_text(one.says));
  return text + ".SH SEE ALSO\n" + also + "\n";
}

}  // namespace

std::string roff_text(std::string_view text) {
  std::string out;
  bool line_begins = true;
  for (const char c : text) {
    if (line_begins && (c == '.' || c == '\'')) out += "\\&";
    line_begins = c == '\n';
    switch (c) {
      case '\\': out += "\\e"; break;
      case '-': out += "\\-"; break;
      case '\'': out += "\\(aq"; break;
      case '`': out += "\\(ga"; break;
      case '^': out += "\\(ha"; break;
      case '~': out += "\\(ti"; break;
      case '"': out += "\\(dq"; break;
      default: out += c;
    }
  }
  return out;
}

std::vector<ManualPage> manual_pages(const Command& root, const std::string& version, const std::string& date) {
  std::vector<ManualPage> pages{{root.name() + ".1", root_page(root, version, date)}};
  for (const auto& noun : root.verbs()) {
    const std::string path = root.name() + " " + noun->name();
    pages.push_back({dashed(path) + ".1", noun_page(*noun, path, version, date)});
  }
  return pages;
}

}  // namespace rodeo::cli
