#include "transport/publisher.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/named_counters.h"
#include "transport/publisher_inside.h"

namespace rodeo::transport {
namespace {

constexpr std::uint64_t kClockPageNs = 2'000'000;  // interval of the clock pages of a silent publisher
constexpr std::uint64_t kSnapshotNs = 100'000'000;

/// Counts the chunks [from, to) of a run. A chunk in parts counts with its last part, its bytes with each.
LinkTally part_of(const ChunkRun& run, std::uint32_t from, std::uint32_t to) {
  ChunkRun part = run;
  part.count = to - from;
  if (part.entries != nullptr) part.entries += from;
  LinkTally tally = tally_of(part);
  if (part.count == 0) tally.chunks = 0;
  return tally;
}

}  // namespace

// ---- runs

bool Publisher::Inside::publish(std::span<const ChunkRun> runs) {
  LinkTally wanted;
  LinkTally unwanted;
  const auto count = [&] {
    counters.add(Counter::chunks_wanted, wanted.chunks);
    counters.add(Counter::no_subscriber, unwanted.chunks);
    counters.add(Counter::wanted_bytes, wanted.bytes);
    counters.add(Counter::no_subscriber_bytes, unwanted.bytes);
  };
  for (; at_run < runs.size(); ++at_run) {
    const ChunkRun& run = runs[at_run];
    if (!in_hand) {
      ++run_number;
      in_pages = 0;
    }
    LinkCounters& link = link_counters[run.link];
    const std::uint32_t number = link.number();
    for (const Target& target : targets[run.link]) {
      Client& client = *target.client;
      if (client.had_run == run_number || client.state == State::gone) continue;
      const bool opens = !client.subscription.ring().has_runs();
      if (!client.subscription.append(target.position, number, run, client.place)) {
        send(client);
        handle_events();
        if (!client.subscription.append(target.position, number, run, client.place)) {
          counters.add(Counter::waits);
          ++client.waits;
          in_hand = run;
          count();
          return false;
        }
      }
      if (opens) client.opened_ns = now_ns;
      // A client that has left, or a monitor without room, has only a part of the run in its pages.
      in_pages = std::max(in_pages, client.place.chunk);
      client.had_run = run_number;
      client.place = {};
    }
    in_hand.reset();
    if (in_pages == run.count) {
      wanted += tally_of(run);
    } else if (in_pages == 0) {
      unwanted += tally_of(run);
    } else {
      wanted += part_of(run, 0, in_pages);
      unwanted += part_of(run, in_pages, run.count);
    }
    link.count(run);
    begun[run.link] = run.more_follows;
  }
  at_run = 0;
  count();
  return true;
}

// Ends the run in hand; appends nothing more of it. Returns the number of its chunks that at least one subscriber has.
std::uint32_t Publisher::Inside::end_run_in_hand(LinkIndex link) {
  for (const Target& target : targets[link]) in_pages = std::max(in_pages, std::exchange(target.client->place, {}).chunk);
  in_hand.reset();
  return in_pages;
}

LinkTally Publisher::Inside::give_up(std::span<const ChunkRun> runs) {
  LinkTally given_up;
  for (; at_run < runs.size(); ++at_run) {
    const ChunkRun& run = runs[at_run];
    std::uint32_t taken = 0;
    if (in_hand) {
      taken = end_run_in_hand(run.link);
      const LinkTally of_pages = part_of(run, 0, taken);
      counters.add(Counter::chunks_wanted, of_pages.chunks);
      counters.add(Counter::wanted_bytes, of_pages.bytes);
    }
    given_up += part_of(run, taken, run.count);
    link_counters[run.link].count(run);
    begun[run.link] = run.more_follows;
  }
  at_run = 0;
  return given_up;
}

// Returns the first subscriber that lacks a part of the run in hand. The others already have that run, and get clock pages.
const Client* Publisher::Inside::waits_for() const {
  if (!in_hand) return nullptr;
  const auto slow = std::ranges::find_if(targets[in_hand->link], [&](const Target& target) {
    return target.client->had_run != run_number && target.client->state != State::gone;
  });
  return slow == targets[in_hand->link].end() ? nullptr : slow->client;
}

// ---- pages

// Fills and sends pages. Once in kLookNs it also reads the messages of subscribers and new peers.
void Publisher::Inside::progress() {
  handle_events();
  const bool look = now_ns - looked_ns >= kLookNs;
  bool gone = false;
  for (const auto& client : clients) {
    client->subscription.set_clock(clock_ns);
    const bool flows = client->state == State::flowing;
    if (look || (flows && (runs_short(*client) || (flushes_between_looks && is_old(*client))))) {
      read(*client);
      on_time(*client);
      close_due_page(*client);
    }
    send(*client);
    gone = gone || client->state == State::gone;
  }
  if (gone || std::exchange(demand_is_old, false)) retarget();
  if (gone) take_snapshot();
  if (look) serve_new_peers();
}

void Publisher::Inside::handle_events() {
  connections.poll(listener.ports(), [this](Client& client, const FabricPort::Event& event) { on_event(client, event); });
}

// Sends full pages until the credit is used up.
void Publisher::Inside::send(Client& client) {
  if (client.state != State::flowing) return;
  PageRing& ring = client.subscription.ring();
  while (client.sent < client.credit) {
    const auto page = ring.next();
    if (!page || !client.port->send(client.connection, page->slot, page->bytes)) break;
    ring.sending();
    ++client.sent;
    ++client.under_way;
    client.bytes += page->bytes;
    client.last_page_ns = now_ns;
    counters.add(Counter::pages_sent);
    counters.add(Counter::bytes_sent, page->bytes);
  }
}

// True if credit or slots run short: progress() then reads the subscriber's messages between two looks, too.
bool Publisher::Inside::runs_short(const Client& client) {
  const PageRing& ring = client.subscription.ring();
  return client.credit - client.sent < ring.slots() / 2 || ring.filled() > ring.slots() / 2;
}

// True if the open page has waited for `flush`.
bool Publisher::Inside::is_old(const Client& client) const {
  return client.subscription.ring().has_runs() &&
         now_ns - client.opened_ns >= static_cast<std::uint64_t>(settings.flush.count());
}

// Closes a page before it is full: it is old, or the last one, or the subscriber needs the time.
void Publisher::Inside::close_due_page(Client& client) {
  if (client.state != State::flowing) return;
  const bool last = ending || client.leaves;
  const bool old = is_old(client);
  // Pages that wait carry the time already, and a clock page would take the room of chunks.
  const bool silent = now_ns - client.last_page_ns >= kClockPageNs && client.subscription.ring().filled() == 0;
  if (last || old || silent) {
    (void)client.subscription.close_page(clock_ns, last ? Flush::end : old ? Flush::time : Flush::clock);
    send(client);
  }
  if (last) send_end(client);
}

// Sends END once the subscriber has everything.
void Publisher::Inside::send_end(Client& client) {
  if (!client.subscription.ring().empty() || client.under_way > 0) return;
  formats::ControlEnd end{.pages = client.sent};
  for (const NamedCounter& lost : settings.losses ? settings.losses() : std::vector<NamedCounter>{}) {
    if (lost.value > 0 && end.losses.size() < formats::kMostControlLosses) end.losses.push_back({lost.name, lost.value});
  }
  client.socket.say(std::move(end));
  client.state = State::leaving;
}

// Serves new peers, and updates the view of the subscribers for other threads.
void Publisher::Inside::serve_new_peers() {
  looked_ns = now_ns;
  const auto on_peer = [this](ControlSocket& socket, formats::ControlMessage said) -> Result<void> {
    if (auto* const wish = std::get_if<formats::ControlSubscribe>(&said)) return on_subscribe(socket, std::move(*wish));
    return std::unexpected(Error{"transport.protocol", fmt::format("publisher {} takes subscriptions only", settings.name)});
  };
  listener.poll(now_ns, on_peer).count(counters);
  if (now_ns - snapshot_ns < kSnapshotNs && !ending) return;
  snapshot_ns = now_ns;
  take_snapshot();
}

// ---- public functions

Publisher::Publisher(PublisherSettings settings, std::span<const Fid> links, bool trigger_list)
    : inside_(std::make_unique<Inside>(std::move(settings), links, trigger_list)) {}

Publisher::~Publisher() {
  for (const auto& client : inside_->clients) inside_->end(*client, Client::State::gone);
}

bool Publisher::publish(std::span<const ChunkRun> runs) { return inside_->publish(runs); }
LinkTally Publisher::give_up(std::span<const ChunkRun> runs) { return inside_->give_up(runs); }
LinkTally Publisher::tally(std::size_t link) const { return inside_->link_counters[link].tally(); }

void Publisher::progress(std::uint64_t now_ns, std::uint64_t clock_ns) {
  inside_->now_ns = now_ns;
  inside_->clock_ns = clock_ns;
  inside_->progress();
}

bool Publisher::wanted(LinkIndex link) const { return inside_->demand[link] != Inside::Demand::none; }
std::uint64_t Publisher::wanted_changes() const { return inside_->demand_changes; }

bool Publisher::wanted_as_data(LinkIndex link) const { return inside_->demand[link] == Inside::Demand::data; }
void Publisher::skip(LinkIndex link, std::uint32_t chunks) { inside_->link_counters[link].skip(chunks); }

bool Publisher::all_links_subscribed() const {
  return std::ranges::all_of(inside_->targets, [](const auto& of) {
    return std::ranges::any_of(of, [](const Inside::Target& one) {
      return one.client->state == Client::State::flowing && !one.client->subscription.wish().monitor;
    });
  });
}

void Publisher::end() { inside_->ending = true; }
bool Publisher::ended() const { return inside_->ending && inside_->clients.empty(); }

std::uint64_t Publisher::pages_taken() const {
  const auto taken_by = [](const Client& client) {
    const PageRing& ring = client.subscription.ring();
    return ring.closed() - ring.filled();
  };
  if (const Client* const slow = inside_->waits_for()) return taken_by(*slow);
  std::uint64_t sum = 0;
  for (const auto& client : inside_->clients) sum += taken_by(*client);
  return sum;
}

std::vector<NamedCounter> Publisher::counters() const {
  return base::named_counters(inside_->counters, kPublisherCounters, [](PublisherCounter) { return true; });
}

std::vector<Publisher::Subscriber> Publisher::subscribers() const {
  const std::scoped_lock lock(inside_->snapshot_lock);
  return inside_->snapshot;
}

}  // namespace rodeo::transport
