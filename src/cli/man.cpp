// `rodeo man`: the manual pages, written from the tree of verbs.
#include <filesystem>
#include <fstream>

#include "cli/man_page.h"
#include "cli/revision.h"
#include "cli/verbs.h"

namespace rodeo::cli {
namespace {

Result<void> write_page(const std::filesystem::path& directory, const ManualPage& page) {
  const auto path = directory / page.file;
  std::ofstream file(path, std::ios::binary);
  file << page.text;
  file.close();
  if (!file)
    return std::unexpected(
        Error{"cli.output", "cannot write a manual page", path.string(), "name a directory that you may write to"});
  return {};
}

}  // namespace

void add_man(Command& root) {
  struct Options {
    std::string directory;
  };
  auto options = std::make_shared<Options>();
  Command& man = root.verb("man", "Writes the manual pages, one for each noun");
  man.example("rodeo man ~/.local/share/man/man1", "afterwards, man rodeo-card shows a page")
      .paragraph("Packages install the pages; use this verb for your own build.");
  man.option("DIRECTORY", options->directory, "Directory of the pages; created if missing").required();
  man.run([options, &root]() -> Result<ExitCode> {
    std::error_code failure;
    std::filesystem::create_directories(options->directory, failure);
    if (failure) {
      return std::unexpected(Error{"cli.output", "cannot make the directory: " + failure.message(), options->directory,
                                   "name a directory that you may write to"});
    }
    root.describe();
    for (const ManualPage& page : manual_pages(root, RODEO_VERSION, RODEO_DATE))
      RODEO_TRY(write_page(options->directory, page));
    return ExitCode::done;
  });
}

}  // namespace rodeo::cli
