#include "farm/supervisor/nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "base/clock.h"
#include "base/need.h"
#include "transport/bus.h"
#include "transport/secret.h"

namespace rodeo::farm {
namespace {

using formats::AssignmentKind;
using formats::AssignmentRefusal;
using C = NodesCounter;

constexpr std::size_t kMostNodes = 65'536;    // Limit of names that are remembered.
constexpr std::uint32_t kMostSlots = 65'536;  // Limit of one node.
// There may be thousands of nodes. Each look checks a part of them for nodes that have gone, and for requests that wait too
// long.
constexpr std::uint64_t kCheckNs = 1'000'000;
constexpr std::size_t kChecks = 10;               // Number of looks in which each node is checked once.
constexpr std::uint64_t kAskBackNs = 20'000'000;  // Pause between two requests to a node that has nothing to give back.
constexpr std::uint64_t kSafeNs = 50'000'000;     // Wait of safe decisions, so that one answer reports many.

/// The memory of a welcome until it is sent.
struct SentWelcome final : transport::ReplyOwner {
  explicit SentWelcome(std::vector<std::byte> of) : bytes(std::move(of)) {}
  void sent(std::uint64_t) noexcept override { delete this; }
  std::vector<std::byte> bytes;
};

transport::ReplierSettings replier_settings(const SupervisorSettings& settings) {
  return {.name = settings.name,
          .service = "assignments",
          .bus = settings.network.bus.empty() ? transport::default_bus() : settings.network.bus,
          .address = settings.network.address,
          .providers = settings.network.providers,
          .secret = need(transport::read_secret(settings.network.secret_file)),
          .page_bytes = settings.network.page_bytes,
          .pages = settings.network.pages,
          .most_clients = settings.most_nodes};
}

}  // namespace

Nodes::Nodes(const SupervisorSettings& settings, Events& events)
    : settings_(settings),
      events_(events),
      replier_(replier_settings(settings)),
      // An earlier supervisor gave its sessions other numbers.
      sessions_(static_cast<std::uint64_t>(base::steady_now_ns()) << 20) {}

bool Nodes::poll(std::uint64_t now_ns) {
  requests_.clear();
  dropped_.clear();
  replier_.poll(now_ns, requests_, dropped_);
  for (const auto& gone : dropped_) forget_parked(gone.client, gone.number);
  for (const auto& request : requests_) {
    on_request(request, now_ns);
    // The message counts, but its client is gone.
    if (transport::Replier::was_dropped(request, dropped_)) forget_parked(request.client, request.number);
  }
  const bool some = !requests_.empty();
  requests_.clear();  // Gives the pages back.
  if (now_ns >= checked_ns_ + kCheckNs) check_nodes(now_ns);
  return some;
}

void Nodes::forget_parked(Client client, std::uint64_t request) {
  const auto found = by_client_.find(client);
  if (found == by_client_.end()) return;
  Node& node = nodes_[found->second];
  if (node.parked && node.client == client && node.parked->number == request) node.parked.reset();
}

void Nodes::refuse(const transport::Replier::Request& request, AssignmentRefusal why) {
  counters_.add(why == AssignmentRefusal::bad_message ? C::bad_messages : C::refused_requests);
  replier_.refuse(request.client, request.number, static_cast<std::uint16_t>(why));
}

void Nodes::on_request(const transport::Replier::Request& request, std::uint64_t now_ns) {
  const auto bytes = request.message.in_one_piece(whole_);
  switch (static_cast<AssignmentKind>(request.kind)) {
    case AssignmentKind::hello: return on_hello(request, bytes, now_ns);
    case AssignmentKind::work: return on_work(request, bytes, now_ns);
  }
  refuse(request, AssignmentRefusal::bad_message);
}

std::optional<std::uint32_t> Nodes::find_or_add_node(const std::string& name) {
  const auto found = by_name_.find(name);
  if (found != by_name_.end()) return found->second;
  if (nodes_.size() >= kMostNodes) return std::nullopt;
  const std::uint32_t number = events_.dispatcher.add_node();
  nodes_.push_back({.name = name});
  by_name_.emplace(name, number);
  return number;
}

void Nodes::on_hello(const transport::Replier::Request& request, std::span<const std::byte> bytes, std::uint64_t now_ns) {
  if (const auto read = formats::decode(bytes, hello_); !read) return refuse(request, AssignmentRefusal::bad_message);
  if (hello_.version != formats::kAssignmentsVersion) return refuse(request, AssignmentRefusal::version);
  if (hello_.name.empty()) return refuse(request, AssignmentRefusal::bad_message);
  if (run_.number == 0) return refuse(request, AssignmentRefusal::not_yet);
  const auto number = find_or_add_node(hello_.name);
  if (!number) return refuse(request, AssignmentRefusal::too_many);
  const Node& had = nodes_[*number];
  const bool other = had.client && *had.client != request.client && !replier_.client_name(*had.client).empty();
  if (other && had.instance != hello_.instance) return refuse(request, AssignmentRefusal::name_taken);
  counters_.add(C::hellos);
  // Some decisions became safe in the former session, and the node does not know it. These are safe at once.
  std::size_t known = 0;
  if (had.session != 0 && had.session == hello_.session && had.instance == hello_.instance && hello_.first > 0 &&
      hello_.first <= had.safe)
    known = std::min<std::size_t>(had.safe - hello_.first + 1, hello_.decisions.size());
  std::vector<std::uint64_t> let_go;
  reconcile(*number, hello_, let_go, now_ns);
  begin_session(*number, request.client, now_ns);
  Node& node = nodes_[*number];
  node.decisions = node.safe = known;
  for (std::size_t i = known; i < hello_.decisions.size(); ++i) {
    ++node.decisions;
    if (hello_.decisions[i].verdict == formats::Verdict::given_back) {
      events_.on_given_back(*number, node.tag(), hello_.decisions[i], false, now_ns);
      continue;
    }
    ++node.all_decisions;
    events_.on_earlier_decision(*number, node.tag(), hello_.decisions[i], now_ns);
  }
  node.granted = std::min(hello_.slots, kMostSlots);
  events_.dispatcher.set_room(*number, over_ ? 0 : static_cast<std::uint32_t>(node.granted));
  formats::NodeWelcome welcome{.run_number = run_.number,
                               .run_type = run_.type,
                               .session = node.session,
                               .event_timeout_ns = static_cast<std::uint64_t>(settings_.event_timeout.count()),
                               .patience_ns = static_cast<std::uint64_t>(settings_.work_patience.count()),
                               .system = settings_.system,
                               .readouts = settings_.readouts,
                               .recorders = settings_.recorders,
                               .let_go = std::move(let_go)};
  reply_.clear();
  encode(welcome, reply_);
  // The welcome may be too large for a copy. Its memory stays until it is sent.
  auto* const sent = new SentWelcome{std::move(reply_)};
  reply_ = {};
  const std::span<const std::byte> parts[] = {sent->bytes};
  replier_.reply(request.client, request.number, 0, parts, sent, 0);
}

/// Compares the node's events with those that the dispatcher has for it. A restarted node has none of its former events.
void Nodes::reconcile(std::uint32_t number, const formats::NodeHello& hello, std::vector<std::uint64_t>& let_go,
                      std::uint64_t now_ns) {
  Node& node = nodes_[number];
  if (node.instance != hello.instance) {
    if (events_.dispatcher.events_of(number) > 0) lose_node(number, "was restarted");
    node.instance = hello.instance;
  }
  // The node keeps the events on which both agree. If a second assignment (build only) did not arrive, the node names
  // the first one.
  std::unordered_set<std::uint64_t> held[2];
  for (const formats::AssignedEvent& event : hello.events) held[event.build_only()].insert(event.id);
  for (const formats::EventDecision& decision : hello.decisions) {
    if (decision.verdict != formats::Verdict::given_back) held[decision.build_only()].insert(decision.id);
  }
  std::vector<std::uint64_t> undelivered;
  std::unordered_set<std::uint64_t> anew;
  events_.dispatcher.for_each_event_of(number, [&](const dispatch::Event& event, bool build_only) {
    if (held[build_only].contains(event.id)) return;
    undelivered.push_back(event.id);
    if (build_only) anew.insert(event.id);
  });
  for (const std::uint64_t id : undelivered) events_.dispatcher.undelivered(number, id);
  for (const formats::AssignedEvent& event : hello.events) {
    if ((!event.build_only() && anew.contains(event.id)) || !events_.adopt(number, event, now_ns))
      let_go.push_back(event.id);
  }
}

void Nodes::begin_session(std::uint32_t number, Client client, std::uint64_t now_ns) {
  Node& node = nodes_[number];
  if (node.client) by_client_.erase(*node.client);
  // A client is one node. It leaves the node of its former name.
  if (const auto was = by_client_.find(client); was != by_client_.end()) {
    const auto& parked = nodes_[was->second].parked;
    if (parked) replier_.refuse(client, parked->number, static_cast<std::uint16_t>(AssignmentRefusal::say_hello));
    unassign_unsent(was->second);
    disconnect(was->second, now_ns);
  }
  by_client_[client] = number;
  node.client = client;
  node.session = ++sessions_;
  node.heard_ns = now_ns;
  node.decisions = node.safe = node.sent_safe = 0;
  node.granted = node.assigned = 0;
  node.unsent.clear();
  node.parked.reset();
  node.lost = node.end_sent = false;
}

void Nodes::on_work(const transport::Replier::Request& request, std::span<const std::byte> bytes, std::uint64_t now_ns) {
  if (const auto read = formats::decode(bytes, work_); !read) return refuse(request, AssignmentRefusal::bad_message);
  const auto found = by_client_.find(request.client);
  if (found == by_client_.end() || nodes_[found->second].session != work_.session || nodes_[found->second].lost)
    return refuse(request, AssignmentRefusal::say_hello);
  const std::uint32_t number = found->second;
  Node& node = nodes_[number];
  if (!work_.decisions.empty() && (work_.first == 0 || work_.first > node.decisions + 1))
    return refuse(request, AssignmentRefusal::say_hello);
  counters_.add(C::works);
  node.heard_ns = now_ns;
  // WORK may repeat earlier decisions, which are skipped.
  const std::size_t known = work_.decisions.empty() ? 0 : static_cast<std::size_t>(node.decisions + 1 - work_.first);
  for (std::size_t i = known; i < work_.decisions.size(); ++i) {
    ++node.decisions;
    if (work_.decisions[i].verdict == formats::Verdict::given_back) {
      events_.on_given_back(number, node.tag(), work_.decisions[i], true, now_ns);
      continue;
    }
    ++node.all_decisions;
    events_.on_decision(number, node.tag(), work_.decisions[i], now_ns);
  }
  node.granted = std::clamp(work_.granted, node.granted, node.assigned + kMostSlots);
  events_.dispatcher.set_room(number, over_ ? 0 : static_cast<std::uint32_t>(node.granted - node.assigned));
  if (node.parked) answer_work(number);
  node.parked = Parked{request.number, now_ns};
  if (!node.unsent.empty() || over_) mark_dirty(number);
}

void Nodes::mark_dirty(std::uint32_t number) {
  if (std::exchange(nodes_[number].dirty, true)) return;
  dirty_.push_back(number);
}

bool Nodes::assign(std::uint64_t now_ns) {
  const auto lost_after = static_cast<std::uint64_t>(settings_.lost_after.count());
  const std::uint32_t some =
      events_.dispatcher.assign(now_ns, [&](std::uint32_t number, const dispatch::Event& event, bool build_only) {
        Node& node = nodes_[number];
        node.unsent.push_back(assigned_event(event, build_only));
        // The event was assigned before, and long ago.
        if (build_only && now_ns - events_.dispatcher.first_assigned_ns(event.id) >= lost_after)
          node.unsent.back().flags |= formats::AssignedEvent::kLast;
        ++node.assigned;
        ++node.all_assigned;
        mark_dirty(number);
      });
  for (const std::uint32_t number : dirty_) {
    nodes_[number].dirty = false;
    if (nodes_[number].parked) answer_work(number);
  }
  dirty_.clear();
  return some > 0;
}

bool Nodes::older_events_wait_for(std::uint32_t number) const {
  const dispatch::Dispatcher& dispatcher = events_.dispatcher;
  return dispatcher.waiting_ahead() > 0 && dispatcher.room_of(number) == 0 && dispatcher.events_of(number) > 0;
}

/// Answers the request that waits. Events that do not fit go with the next answer.
void Nodes::answer_work(std::uint32_t number) {
  Node& node = nodes_[number];
  orders_.safe = node.safe;
  orders_.first = node.assigned - node.unsent.size() + 1;
  orders_.flags = over_ && node.safe == node.decisions ? formats::NodeOrders::kOver : 0;
  orders_.give_back = 0;
  orders_.newer_than = 0;
  if (older_events_wait_for(number)) {
    orders_.give_back = std::min(events_.dispatcher.waiting_ahead(), events_.dispatcher.events_of(number));
    orders_.newer_than = events_.dispatcher.oldest_ahead();
  }
  const std::size_t count = std::min(node.unsent.size(), formats::kMostEventsAtOnce);
  orders_.events.assign(node.unsent.begin(), node.unsent.begin() + static_cast<std::ptrdiff_t>(count));
  node.unsent.erase(node.unsent.begin(), node.unsent.begin() + static_cast<std::ptrdiff_t>(count));
  reply_.clear();
  encode(orders_, reply_);
  const std::span<const std::byte> parts[] = {reply_};
  replier_.reply(*node.client, node.parked->number, 0, parts);
  counters_.add(C::orders);
  node.sent_safe = node.safe;
  if (orders_.over()) node.end_sent = true;
  node.parked.reset();
}

void Nodes::lose_node(std::uint32_t number, std::string_view why) {
  Node& node = nodes_[number];
  const std::uint32_t events = events_.dispatcher.events_of(number);
  counters_.add(C::nodes_lost);
  messages_.push_back(fmt::format("node {} {}: {} of its events are assigned again", node.name, why, events));
  unassign_unsent(number);
  events_.dispatcher.node_gone(number);
  node.lost = true;
}

/// Marks the node as away. It may come back and report what it has received.
void Nodes::disconnect(std::uint32_t number, std::uint64_t now_ns) {
  Node& node = nodes_[number];
  by_client_.erase(*node.client);
  node.client.reset();
  node.parked.reset();
  node.heard_ns = now_ns;
  events_.dispatcher.set_room(number, 0);
}

/// Takes the events that were not sent to this node. Other nodes get them, because no selection has seen them.
void Nodes::unassign_unsent(std::uint32_t number) {
  for (const formats::AssignedEvent& event : std::exchange(nodes_[number].unsent, {}))
    events_.dispatcher.undelivered(number, event.id);
}

/// Checks a part of the nodes: which have gone, which are silent, and which have waited long for an answer.
void Nodes::check_nodes(std::uint64_t now_ns) {
  checked_ns_ = now_ns;
  const auto patience = static_cast<std::uint64_t>(settings_.work_patience.count());
  const auto grace = static_cast<std::uint64_t>(settings_.node_grace.count());
  const auto count = static_cast<std::uint32_t>(nodes_.size());
  const bool heard_all = replier_.heard_all();  // False: messages may have waited while this thread stood still.
  for (std::uint32_t i = 0; i < (count + kChecks - 1) / kChecks; ++i) {
    const std::uint32_t number = next_to_check_++ % count;
    Node& node = nodes_[number];
    if (node.client && replier_.client_name(*node.client).empty()) disconnect(number, now_ns);
    if (node.parked) {
      node.heard_ns = now_ns;
      const std::uint64_t waited = now_ns - node.parked->since_ns;
      const bool ask_back = older_events_wait_for(number) && now_ns - node.asked_back_ns >= kAskBackNs;
      if (ask_back) node.asked_back_ns = now_ns;
      if (waited >= patience || ask_back || (node.safe > node.sent_safe && waited >= kSafeNs)) answer_work(number);
    } else if (!node.lost && heard_all && now_ns - node.heard_ns > grace) {
      if (node.client || events_.dispatcher.events_of(number) > 0) lose_node(number, node.client ? "is silent" : "has gone");
      node.lost = true;
    }
  }
}

void Nodes::announce_end() {
  over_ = true;
  for (std::uint32_t number = 0; number < nodes_.size(); ++number) {
    events_.dispatcher.set_room(number, 0);
    if (nodes_[number].parked) mark_dirty(number);
  }
}

bool Nodes::all_informed() const {
  return std::ranges::all_of(nodes_, [](const Node& node) { return !node.client || node.lost || node.end_sent; });
}

std::size_t Nodes::connected() const {
  return static_cast<std::size_t>(std::ranges::count_if(nodes_, [](const Node& node) { return node.client && !node.lost; }));
}

std::vector<SupervisedNode> Nodes::status() const {
  std::vector<SupervisedNode> out;
  out.reserve(nodes_.size());
  for (std::uint32_t number = 0; number < nodes_.size(); ++number) {
    const Node& node = nodes_[number];
    out.push_back({.name = node.name,
                   .connected = node.client && !node.lost,
                   .events = events_.dispatcher.events_of(number),
                   .room = events_.dispatcher.room_of(number),
                   .assigned = node.all_assigned,
                   .decisions = node.all_decisions});
  }
  return out;
}

std::vector<NamedCounter> Nodes::counters() const {
  auto counters = base::named_counters(counters_, kNodesCounters, [](NodesCounter) { return true; });
  for (const NamedCounter& one : replier_.counters()) counters.push_back({"network_" + one.name, one.value});
  return counters;
}

}  // namespace rodeo::farm
