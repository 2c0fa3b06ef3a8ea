// `rodeo docs`: opens the documentation site, or prints its address.
#include "cli/docs.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <unistd.h>

#include <cctype>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "base/nearest.h"
#include "cli/program.h"
#include "cli/verbs.h"

namespace rodeo::cli {

namespace fs = std::filesystem;

namespace {

constexpr const char* kFirstPage = "docs/index.html";

std::string address_of(const fs::path& page) {
  std::string address = "file://";
  for (const char c : page.string()) {
    const auto byte = static_cast<unsigned char>(c);
    address +=
        std::isalnum(byte) || std::string_view("/-._~").contains(c) ? std::string(1, c) : fmt::format("%{:02X}", byte);
  }
  return address;
}

/// The page whose path in the site ends with `name`: `limits`, `how-to/data-files`.
Result<fs::path> find_page(const fs::path& site, const std::string& name) {
  std::vector<std::string> known;
  std::error_code failed;
  for (fs::recursive_directory_iterator at(site, failed), end; !failed && at != end; at.increment(failed)) {
    if (at->path().extension() != ".html") continue;
    fs::path page = at->path().lexically_relative(site);
    const std::string text = "/" + page.replace_extension().string();
    if (text.ends_with("/" + name)) return at->path();
    known.push_back(page.filename().string());
  }
  return std::unexpected(
      Error{"cli.unknown_page", fmt::format("no page is called `{}`", name), {}, base::did_you_mean(name, known)});
}

bool has_display() {
  const auto set = [](const char* name) {
    const char* const value = std::getenv(name);
    return value != nullptr && *value != '\0';
  };
  return set("DISPLAY") || set("WAYLAND_DISPLAY");
}

/// Starts the desktop's opener in a session of its own: the browser may outlive this process.
void open_in_browser(std::string address) {
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_t files;
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_init(&files);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    posix_spawn_file_actions_addopen(&files, fd, "/dev/null", O_RDWR, 0);
  std::string opener = "xdg-open";
  char* words[] = {opener.data(), address.data(), nullptr};
  pid_t ignored = 0;
  // Without the opener the printed address remains.
  (void)posix_spawnp(&ignored, opener.c_str(), &files, &attributes, words, environ);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
}

}  // namespace

fs::path documentation_site() {
  const auto installed = find_beside({RODEO_SITE_FROM_COMMAND "/index.html"});
  return installed ? installed->parent_path() : command_directory() / "site";
}

void add_docs(Command& root) {
  struct Options {
    std::string page;
    bool print = false;
  };
  auto options = std::make_shared<Options>();
  Command& docs = root.verb("docs", "Opens the documentation in a browser, and prints its address");
  docs.example("rodeo docs", "the first page").example("rodeo docs limits --print", "only the address of a page");
  docs.option("PAGE", options->page, "The end of a page's path: `limits`, `how-to/data-files`");
  docs.flag("--print", options->print, "Only print the address");
  docs.paragraph(
      "Without a display it only prints the address. The site needs no network. A control room serves it as well.");
  docs.run([options]() -> Result<ExitCode> {
    const fs::path site = documentation_site();
    fs::path page = site / kFirstPage;
    if (!fs::exists(page))
      return std::unexpected(Error{"cli.no_docs", "the documentation site is not there", site.string(),
                                   "in a clone, tools/docs builds it; packages have it"});
    if (!options->page.empty()) page = RODEO_TRY(find_page(site, options->page));
    const std::string address = address_of(page);
    print(address + "\n");
    if (!options->print && has_display()) open_in_browser(address);
    return ExitCode::done;
  });
}

}  // namespace rodeo::cli
