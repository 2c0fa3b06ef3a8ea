#include "input/network_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "base/clock.h"
#include "base/named_counters.h"
#include "base/need.h"
#include "formats/link_names.h"
#include "input/paged_stream.h"
#include "rodeo/settings.h"
#include "transport/secret.h"

namespace rodeo::input {
namespace {

const Settings<NetworkInputSettings>& network_input_table() {
  using K = NetworkInputSettings;
  static const Settings<K> table{
      setting(&K::bus, "bus", "Directory of the bus, where publishers are found. Empty: that of this user on this host."),
      setting(&K::name, "subscriber", "Name of this readout at the publishers."),
      setting(&K::publishers, "publishers",
              "Publishers to take links from: \"felix0.0\" is the first reader of router felix0, mostly a card; "
              "the trigger's list comes from the same router. Empty: all on the bus."),
      setting(&K::links, "links",
              "Links to subscribe to; FID+N is a range, `rodeo route list --links` shows all links. Empty: all links "
              "that the publishers have at the start, except virtual ones, which have no fibre."),
      setting(&K::provider, "provider",
              "Network to use: a provider of libfabric. auto: verbs if both sides have it, else tcp. shm is for "
              "publishers that offer it by name.",
              {.choices = {"auto", "tcp", "shm", "verbs"}}),
      setting(&K::secret_file, "secret_file", "File with the secret that publishers ask for. Only its owner may read it."),
      setting(&K::pages, "pages", "Pages in flight from one publisher to one worker.", {.minimum = 4, .maximum = 4096}),
      setting(&K::max_chunk_bytes, "max_chunk",
              "Longer chunks are cut and marked. 0: the limit that the publishers announce on the bus.",
              {.maximum = 256.0 * (1 << 20), .unit = Unit::bytes}),
      setting(&K::monitor, "monitor", "Lose chunks rather than make publishers wait."),
      setting(&K::unbuffered, "unbuffered", "Publishers send each run at once: less latency, more work."),
      setting(&K::wait, "wait",
              "How long to wait for publishers at the start. A publisher that refuses for longer (other secret or version) "
              "ends the run.",
              {.minimum = 0}),
      setting(&K::silence, "silence",
              "After this time without a message from a publisher, events no longer wait for its links.", {.minimum = 1e8}),
  };
  return table;
}

const transport::BusEntry* publisher_of(const std::vector<transport::BusEntry>& entries, Fid link) {
  const auto found = std::ranges::find_if(entries, [&](const transport::BusEntry& entry) {
    return !entry.trigger_list && std::ranges::find(entry.links, link) != entry.links.end();
  });
  return found == entries.end() ? nullptr : &*found;
}

/// "felix0" of "felix0.2": a router numbers its readers, including the reader of the trigger's list.
std::string_view router_of(std::string_view publisher) { return publisher.substr(0, publisher.rfind('.')); }

/// The entries of the bus whose publishers answer.
std::vector<transport::BusEntry> living(const std::filesystem::path& bus) {
  std::vector<transport::BusEntry> entries = need(transport::read_bus(bus)).entries;
  std::erase_if(entries, [](const transport::BusEntry& entry) {
    return !transport::accepts_connections(entry.address, entry.port, std::chrono::milliseconds{500});
  });
  return entries;
}

}  // namespace

NetworkInputSettings NetworkInputSettings::from(const Parameters& parameters) {
  return network_input_table().read(parameters);
}

std::vector<Key> network_input_keys() { return network_input_table().keys(); }

namespace {

/// Virtual links have no fibre, and links to front-ends carry no detector data.
bool brings_detector_data(Fid link) { return !link.is_virtual() && !link.to_frontend(); }

}  // namespace

NetworkInput::NetworkInput(NetworkInputSettings settings)
    : settings_(std::move(settings)), secret_(need(transport::read_secret(settings_.secret_file))) {
  if (settings_.bus.empty()) settings_.bus = transport::default_bus();
  if (const auto out = std::ranges::find_if(settings_.links, &Fid::to_frontend); out != settings_.links.end())
    throw SetupError({"readout.unknown_link",
                      fmt::format("link {} goes to a front-end and brings no data", formats::named_link(*out)),
                      "readout.input.links", "name the link from that front-end: the FID without the direction bit"});
  const std::uint64_t begin = base::steady_now_ns();
  for (;;) {
    entries_ = living(settings_.bus);
    const auto absent = std::ranges::find_if(settings_.publishers, [&](const std::string& name) {
      return std::ranges::find(entries_, name, &transport::BusEntry::name) == entries_.end();
    });
    const bool all_there = absent == settings_.publishers.end();
    if (!settings_.publishers.empty()) {
      std::erase_if(entries_, [&](const transport::BusEntry& entry) {
        return std::ranges::none_of(settings_.publishers, [&](const std::string& name) {
          return entry.trigger_list ? router_of(name) == router_of(entry.name) : name == entry.name;
        });
      });
    }
    const auto missing =
        std::ranges::find_if(settings_.links, [&](Fid link) { return publisher_of(entries_, link) == nullptr; });
    const bool some = std::ranges::any_of(
        entries_, [](const auto& entry) { return std::ranges::any_of(entry.links, &brings_detector_data); });
    if (all_there && some && missing == settings_.links.end()) break;
    if (base::steady_now_ns() - begin >= static_cast<std::uint64_t>(settings_.wait.count())) {
      throw SetupError(
          {"input.no_publisher",
           !std::filesystem::is_directory(settings_.bus)
               ? fmt::format("the directory of the bus, {}, does not exist", settings_.bus.string())
           : !all_there ? fmt::format("publisher {} does not answer on the bus {}", *absent, settings_.bus.string())
           : !some
               ? fmt::format("no publisher answers on the bus {}", settings_.bus.string())
               : fmt::format("no publisher on bus {} has link {}", settings_.bus.string(), formats::named_link(*missing)),
           "readout.input.bus", "start a router with this bus (`rodeo route`); `rodeo route list` shows the publishers"});
    }
    std::this_thread::sleep_for(std::chrono::milliseconds{50});
  }
  if (settings_.links.empty()) {
    for (const transport::BusEntry& entry : entries_) {
      for (const Fid link : entry.links) {
        if (!brings_detector_data(link) || std::ranges::find(settings_.links, link) != settings_.links.end()) continue;
        settings_.links.push_back(link);
      }
    }
  }
  links_ = OfferedLinks(settings_.links);
}

std::unique_ptr<DataStream> NetworkInput::open(std::span<const Fid> links) {
  (void)links_.select(links, "the network");
  std::vector<NetworkStream::Publisher> publishers;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < links.size(); ++i) {
    const std::string& name = publisher_of(entries_, links[i])->name;
    const auto known = std::ranges::find(names, name);
    const auto at = static_cast<std::size_t>(known - names.begin());
    if (known == names.end()) {
      names.push_back(name);
      publishers.emplace_back();
      if (!settings_.publishers.empty()) publishers.back().name = name;
    }
    publishers[at].links.push_back(links[i]);
    publishers[at].indices.push_back(static_cast<LinkIndex>(i));
  }
  return open(publishers, false);
}

// The largest limit of these publishers.
std::uint32_t NetworkInput::longest_chunk(const std::vector<NetworkStream::Publisher>& publishers) const {
  if (settings_.max_chunk_bytes != 0) return settings_.max_chunk_bytes;
  std::uint32_t longest = 1;
  for (const NetworkStream::Publisher& publisher : publishers) {
    const transport::BusEntry* const entry = publisher_of(entries_, publisher.links.front());
    const bool says = entry != nullptr && entry->max_chunk_bytes != 0;
    longest = std::max(longest, says ? entry->max_chunk_bytes : NetworkStream::kMostChunkBytes);
  }
  return longest;
}

std::unique_ptr<DataStream> NetworkInput::open_trigger_list() {
  const auto list = std::ranges::find_if(entries_, &transport::BusEntry::trigger_list);
  if (list == entries_.end()) return nullptr;
  return open({{.links = {list->links.front()},
                .indices = {LinkIndex{0}},
                .name = settings_.publishers.empty() ? std::string{} : list->name}},
              true);
}

std::unique_ptr<DataStream> NetworkInput::open(const std::vector<NetworkStream::Publisher>& publishers, bool trigger_list) {
  const transport::SubscriberSettings settings{.name = settings_.name,
                                               .bus = settings_.bus,
                                               .provider = settings_.provider,
                                               .secret = secret_,
                                               .pages = settings_.pages,
                                               .monitor = settings_.monitor,
                                               .unbuffered = settings_.unbuffered,
                                               .trigger_list = trigger_list};
  const auto silence = static_cast<std::uint64_t>(settings_.silence.count());
  auto& streams = trigger_list ? lists_ : streams_;
  streams.push_back(std::make_unique<NetworkStream>(settings, publishers, silence, longest_chunk(publishers)));
  streams.back()->give_up_after(settings_.wait);
  return std::make_unique<StreamHandle>(*streams.back());
}

void NetworkInput::stop() {
  for (const auto* streams : {&streams_, &lists_}) {
    for (const auto& stream : *streams) stream->stop();
  }
}

std::string NetworkInput::failure() const {
  for (const auto* streams : {&streams_, &lists_}) {
    for (const auto& stream : *streams) {
      if (std::string why = stream->failure(); !why.empty()) return why;
    }
  }
  return {};
}

bool NetworkInput::connected() const {
  const auto all = [](const auto& streams) {
    return std::ranges::all_of(streams, [](const auto& stream) { return stream->connected(); });
  };
  return all(streams_) && all(lists_);
}

std::vector<NamedCounter> NetworkInput::counters() const {
  std::vector<NamedCounter> all;
  const auto count = [&](const NetworkStream& stream, const std::string& prefix) {
    const NetworkCounts& counts = stream.counts();
    for (const auto& [name, value] : {std::pair{"network_lost", counts.lost_chunks.get()},
                                      {"network_cut_chunks", counts.cut_chunks.get()},
                                      {"network_cut_bytes", counts.cut_bytes.get()},
                                      {"network_lost_pages", counts.lost_pages.get()},
                                      {"network_repeated_pages", counts.repeated_pages.get()},
                                      {"network_bad_pages", counts.bad_pages.get()},
                                      {"network_connections", counts.connections.get()},
                                      {"network_cut_off", counts.cut_off.get()}})
      base::add_counter(all, {prefix + name, value});
  };
  for (const auto& stream : streams_) {
    base::add_counter(all, {"sent", stream->counters().chunks});
    base::add_counter(all, {"sent_bytes", stream->counters().bytes});
    count(*stream, "");
  }
  for (const auto& list : lists_) count(*list, "list_");
  // Several streams, and several readers of one router, get the same report. It may contain losses of other links; the
  // losses of this input's links are counted here.
  for (const auto* streams : {&streams_, &lists_}) {
    for (const auto& stream : *streams) {
      for (const NamedCounter& lost : stream->losses()) {
        std::uint64_t& counter = base::counter_named(all, "upstream_" + lost.name);
        counter = std::max(counter, lost.value);
      }
    }
  }
  return all;
}

}  // namespace rodeo::input
