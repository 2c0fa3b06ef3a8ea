#include "bench/network/bare_requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <span>
#include <vector>

#include "base/arena.h"
#include "base/clock.h"
#include "base/thread.h"
#include "transport/replier.h"
#include "transport/requester.h"

namespace rodeo::bench {
namespace {

using namespace std::chrono_literals;

std::string service_of(std::uint32_t number) { return fmt::format("bare{}", number); }

/// The memory of replies stays until the end.
class Owner final : public transport::ReplyOwner {
 public:
  void sent(std::uint64_t) noexcept override {}
};

void serve(const BareRequestsSettings& settings, const std::filesystem::path& bus, std::uint32_t number,
           const Meeting& meeting) {
  base::set_thread_name("bare-service");
  auto memory = base::Arena::create(std::size_t{settings.reply_bytes} * settings.replies);
  if (!memory) throw SetupError(memory.error());
  Owner owner;
  transport::Replier replier({.name = service_of(number),
                              .service = "bare",
                              .bus = bus,
                              .providers = {settings.provider},
                              .page_bytes = settings.page_bytes,
                              .pages = settings.pages});
  std::vector<transport::Replier::Request> requests;
  std::vector<transport::Replier::Dropped> dropped;
  std::size_t next = 0;
  base::Backoff backoff;
  while (!meeting.stop.load(std::memory_order_relaxed)) {
    requests.clear();
    dropped.clear();
    replier.poll(base::steady_now_ns(), requests, dropped);
    for (const auto& request : requests) {
      const std::span<const std::byte> part(memory->data() + next * settings.reply_bytes, settings.reply_bytes);
      next = (next + 1) % settings.replies;
      replier.reply(request.client, request.number, 0, std::span(&part, 1), &owner);
    }
    requests.empty() ? backoff.idle() : backoff.reset();
  }
}

void ask(const BareRequestsSettings& settings, const std::filesystem::path& bus, std::uint32_t number, Meeting& meeting) {
  base::set_thread_name("bare-client");
  using transport::Requester;
  Requester requester({.name = fmt::format("client{}", number),
                       .bus = bus,
                       .provider = settings.provider,
                       .pages = settings.pages,
                       .most_requests = settings.under_way + 1});
  for (std::uint32_t i = 0; i < settings.services; ++i) (void)requester.add(service_of(i));
  const std::vector<std::byte> request(settings.request_bytes);
  std::vector<Requester::Reply> replies;
  base::Backoff backoff;
  while (!meeting.stop.load(std::memory_order_relaxed)) {
    bool moved = false;
    bool all = true;
    for (Requester::Service service = 0; service < settings.services; ++service) all = all && requester.connected(service);
    for (Requester::Service service = 0; service < settings.services; ++service) {
      while (requester.connected(service) && requester.under_way(service) < settings.under_way &&
             requester.ask(service, 1, request, 30s))
        moved = true;
    }
    replies.clear();
    requester.poll(base::steady_now_ns(), replies);
    std::uint64_t bytes = 0;
    for (const auto& reply : replies) {
      if (reply.outcome == Requester::Outcome::answered) bytes += reply.message.bytes();
    }
    // Count only while all connections work.
    if (all) meeting.bytes.fetch_add(bytes, std::memory_order_relaxed);
    moved || !replies.empty() ? backoff.reset() : backoff.idle();
  }
}

}  // namespace

Window bare_requests(const BareRequestsSettings& settings, const std::filesystem::path& bus) {
  const SharedMeeting meeting;
  return measure(
      *meeting, settings.seconds,
      [&] { in_threads(settings.services, *meeting, [&](std::uint32_t i) { serve(settings, bus, i, *meeting); }); },
      [&] { in_threads(settings.clients, *meeting, [&](std::uint32_t i) { ask(settings, bus, i, *meeting); }); });
}

}  // namespace rodeo::bench
