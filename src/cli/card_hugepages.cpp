// `rodeo card hugepages`: shows and reserves huge pages for DMA buffers (setup-hugetlbfs of ReadoutCard).
#include <fmt/format.h>

#include "base/units.h"
#include "card/huge_pages.h"
#include "cli/card.h"

namespace rodeo::cli {
namespace {

struct CardHugepagesOptions {
  std::optional<std::uint64_t> page_bytes;
  std::optional<std::uint64_t> pages;
  unsigned node = 0;
  OutputFormat format = OutputFormat::table;
};

std::string mounts_of(std::uint64_t page_bytes) {
  std::string list;
  for (const card::HugePageMount& mount : card::huge_page_mounts()) {
    if (mount.page_bytes == page_bytes || (mount.page_bytes == 0 && page_bytes == 2 << 20)) {
      list += (list.empty() ? "" : " ") + mount.directory.string();
    }
  }
  return list;
}

Result<ExitCode> show_or_set(const CardHugepagesOptions& options) {
  if (options.page_bytes.has_value() != options.pages.has_value()) {
    return usage_error("--size and --pages go together", "rodeo card hugepages --size 2MiB --pages 512 [--node 1]");
  }
  if (options.pages) RODEO_TRY(card::set_huge_pages(options.node, *options.page_bytes, *options.pages));
  Table table({{"NUMA node", "numa_node"},
               {"page", "page_bytes"},
               {"pages", "pages"},
               {"free", "free"},
               {"files in", "mounted_at"}});
  for (const card::HugePagePool& pool : card::huge_page_pools()) {
    table.add_row({pool.node, Cell(pool.page_bytes, base::format_size(pool.page_bytes)), pool.pages,
                   Cell(pool.free, {}, pool.free == 0 ? Style::faint : Style::plain), mounts_of(pool.page_bytes)});
  }
  table.print(options.format);
  return ExitCode::done;
}

}  // namespace

void add_card_huge_pages(Command& card) {
  auto options = std::make_shared<CardHugepagesOptions>();
  Command& verb = card.verb("hugepages", "Shows and reserves huge pages for DMA buffers");
  verb.example("rodeo card hugepages", "by NUMA node and size")
      .example("sudo rodeo card hugepages --size 1GiB --pages 6", "six of 1 GiB on node 0, until the next boot");
  verb.size("--size", options->page_bytes, "Size of the pages to reserve");
  verb.option("--pages", options->pages, "Number of pages of this size");
  verb.option("--node", options->node, "NUMA node");
  verb.output(options->format);
  verb.paragraph(
      "All or nothing: a request beyond the node's memory is refused (status 5). If the kernel finds fewer pages than "
      "requested, the old number is restored (status 1).");
  verb.run([options] { return show_or_set(*options); });
}

}  // namespace rodeo::cli
