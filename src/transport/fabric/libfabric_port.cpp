#include "transport/fabric/libfabric_port.h"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "transport/kept_signals.h"

namespace rodeo::transport::fabric {
namespace {

constexpr std::size_t kCompletions = 8192;  // size of a queue
constexpr std::size_t kCompletionsOfMany = 512;
// Ends of one queue, for `many`. libfabric looks at each end of a queue that it reads, so one queue for thousands of ends is
// slow. Each queue that has events costs a system call.
constexpr std::size_t kEndsOfMany = 16;
constexpr std::size_t kMostParts = 8;
constexpr std::uint32_t kPollsBetweenLooks = 256;  // polls between two looks at connections; each look takes a system call

}  // namespace

Error failure(std::string code, const std::string& doing, long status, std::string next) {
  return {std::move(code), "cannot " + doing + ": " + fi_strerror(static_cast<int>(-status)), {}, std::move(next)};
}

// A queue of an RDMA device has room for all operations of its ends, because an overflow ends all of them. Queues of `many`
// belong to tcp, and grow.
Result<LibfabricPort::Queue*> LibfabricPort::queue_with_room(std::size_t operations) {
  const bool many = size_ == PortSize::many;
  for (const auto& queue : queues_) {
    if (many ? queue->ends < kEndsOfMany : queue->operations + operations <= kCompletions) return queue.get();
  }
  auto made_queue = std::make_unique<Queue>();
  made_queue->completions = RODEO_TRY(made<fid_cq>("open a completion queue", [&](fid_cq** object) {
    fi_cq_attr attributes{};
    attributes.size = many ? kCompletionsOfMany : std::max(kCompletions, operations);
    attributes.format = FI_CQ_FORMAT_MSG;
    // libfabric 1.17 looks at all sockets of a queue with poll(2), unless the queue has a descriptor to wait for: then it
    // uses epoll(7).
    attributes.wait_obj = many ? FI_WAIT_FD : FI_WAIT_NONE;
    return fi_cq_open(domain_.get(), &attributes, object, nullptr);
  }));
  if (many) {
    if (!ready_) ready_ = base::UniqueFd(::epoll_create1(EPOLL_CLOEXEC));
    int descriptor = -1;
    int status = fi_control(&made_queue->completions->fid, FI_GETWAIT, &descriptor);
    epoll_event event{.events = EPOLLIN, .data = {.ptr = made_queue.get()}};
    if (status == 0 && ::epoll_ctl(ready_.get(), EPOLL_CTL_ADD, descriptor, &event) != 0) status = -errno;
    if (status != 0) return std::unexpected(failure("transport.descriptors", "watch a completion queue", status));
  }
  return queues_.emplace_back(std::move(made_queue)).get();
}

LibfabricPort::~LibfabricPort() {
  ends_.clear();
  closed_.clear();
}

Result<FabricPort::Connection> LibfabricPort::open(std::span<std::byte> memory, std::size_t slot_bytes) {
  const KeptSignals kept;
  auto made_end = std::make_unique<End>();
  End& end = *made_end;
  end.queue = RODEO_TRY(queue_with_room(memory.size() / slot_bytes));
  end.memory = memory;
  end.slot_bytes = slot_bytes;
  end.operations.resize(memory.size() / slot_bytes);
  for (std::uint32_t slot = 0; slot < end.operations.size(); ++slot) {
    end.operations[slot].end = &end;
    end.operations[slot].slot = slot;
  }
  if ((info_->domain_attr->mr_mode & FI_MR_LOCAL) != 0) {
    fid_mr* region = nullptr;
    const int status = fi_mr_reg(domain_.get(), memory.data(), memory.size(), FI_SEND | FI_RECV, 0, 0, 0, &region, nullptr);
    if (status != 0) {
      return std::unexpected(failure("transport.memory", "register memory for the network", status,
                                     "raise the limit of locked memory: `ulimit -l` shows it"));
    }
    end.region.reset(region);
  }
  RODEO_TRY(prepare(end));
  ++unsettled_;
  ++end.queue->ends;
  end.queue->operations += end.operations.size();
  const auto free = std::ranges::find_if(ends_, [](const auto& one) { return one == nullptr; });
  end.number = static_cast<Connection>(free - ends_.begin());
  if (free == ends_.end()) {
    ends_.push_back(std::move(made_end));
  } else {
    *free = std::move(made_end);
  }
  return end.number;
}

Result<void> LibfabricPort::bind_completions(End& end) {
  if (const int status = fi_ep_bind(end.endpoint.get(), &end.queue->completions->fid, FI_TRANSMIT | FI_RECV); status != 0)
    return std::unexpected(failure("transport.endpoint", "bind an endpoint", status));
  return {};
}

// True if libfabric has accepted the operation.
bool LibfabricPort::begun(End& end, Operation& operation, bool sending, long status) {
  mark_hot(*end.queue);
  if (status == 0) {
    operation.sending = sending;
    ++end.under_way;
    return true;
  }
  if (status != -FI_EAGAIN) lost(end);
  return false;
}

bool LibfabricPort::send(Connection number, std::uint32_t slot, std::size_t bytes) {
  End& of = end(number);
  if (!of.connected || of.broken) return false;
  Operation& operation = of.operations[slot];
  return begun(of, operation, true,
               fi_send(of.endpoint.get(), of.memory.data() + slot * of.slot_bytes, bytes, of.descriptor(), of.peer,
                       &operation.context));
}

std::size_t LibfabricPort::most_parts() const {
  const bool registered = (info_->domain_attr->mr_mode & FI_MR_LOCAL) != 0;
  return registered ? 1 : std::clamp<std::size_t>(info_->tx_attr->iov_limit, 1, kMostParts);
}

bool LibfabricPort::send(Connection number, std::uint32_t slot, std::span<const std::span<const std::byte>> parts) {
  End& of = end(number);
  if (!of.connected || of.broken) return false;
  std::array<iovec, kMostParts> vectors;
  for (std::size_t i = 0; i < parts.size(); ++i)
    vectors[i] = {const_cast<std::byte*>(parts[i].data()), parts[i].size()};  // libfabric only reads
  std::array<void*, kMostParts> descriptors;
  descriptors.fill(of.descriptor());
  Operation& operation = of.operations[slot];
  return begun(of, operation, true,
               fi_sendv(of.endpoint.get(), vectors.data(), descriptors.data(), parts.size(), of.peer, &operation.context));
}

bool LibfabricPort::receive(Connection number, std::uint32_t slot) {
  End& of = end(number);
  if (of.broken) return false;
  Operation& operation = of.operations[slot];
  if (!begun(of, operation, false,
             fi_recv(of.endpoint.get(), of.memory.data() + slot * of.slot_bytes, of.slot_bytes, of.descriptor(),
                     FI_ADDR_UNSPEC, &operation.context)))
    return false;
  operation.arrived = false;
  of.posted.push_back(slot);
  return true;
}

// Pages fill receives in the order in which these were posted. Shared memory may report a short page before an earlier, long
// page is copied: received() events keep the order of posting.
void LibfabricPort::arrived(End& end, Operation& operation, std::size_t bytes) {
  operation.arrived = true;
  operation.bytes = static_cast<std::uint32_t>(bytes);
  for (; !end.posted.empty() && end.operations[end.posted.front()].arrived; end.posted.pop_front()) {
    const Operation& first = end.operations[end.posted.front()];
    events_.push_back({Event::What::received, end.number, first.slot, first.bytes});
  }
}

void LibfabricPort::mark_settled(End& end) {
  if (!std::exchange(end.settled, true)) --unsettled_;
}

void LibfabricPort::lost(End& end) {
  if (end.broken || end.closed) return;
  end.broken = true;
  mark_settled(end);
  add_event(Event::What::broken, end);
}

// Reads only queues that the kernel reports, or that were used since: an empty queue costs nothing.
std::size_t LibfabricPort::poll(std::span<Event> events) {
  std::size_t filled = 0;
  const auto fill = [&] {
    for (; filled < events.size() && !events_.empty(); events_.pop_front()) events[filled++] = events_.front();
  };
  if (++polls_ % kPollsBetweenLooks == 0 || unsettled_ > 0) check_connections();
  fill();
  if (filled == events.size()) return filled;
  note_ready_queues();
  read_.swap(hot_);
  // If `events` is too small for all queues, the next poll begins with another queue.
  if (read_.size() > 1) std::ranges::rotate(read_, read_.begin() + polls_ % read_.size());
  for (Queue* const queue : read_) {
    queue->hot = false;
    if (filled == events.size() || read(*queue, events, filled)) mark_hot(*queue);
  }
  read_.clear();
  fill();
  std::erase_if(closed_, [&](const auto& end) {
    mark_hot(*end->queue);
    if (end->under_way > 0) return false;
    --end->queue->ends;
    end->queue->operations -= end->operations.size();
    return true;
  });
  return filled;
}

void LibfabricPort::note_ready_queues() {
  if (size_ == PortSize::few) {
    for (const auto& queue : queues_) mark_hot(*queue);
    return;
  }
  if (queues_.empty()) return;
  std::array<epoll_event, 256> ready;
  const int count = ::epoll_wait(ready_.get(), ready.data(), static_cast<int>(ready.size()), 0);
  for (int i = 0; i < count; ++i) mark_hot(*static_cast<Queue*>(ready[static_cast<std::size_t>(i)].data.ptr));
}

// True if the queue may have more events. A queue of `many` is read until it is empty, so a poll() that returns fewer events
// than fit has returned all.
bool LibfabricPort::read(Queue& queue, std::span<Event> events, std::size_t& filled) {
  std::array<fi_cq_msg_entry, 32> entries;
  while (filled + events_.size() < events.size()) {
    const std::size_t most = std::min(entries.size(), events.size() - filled);
    const ssize_t count = fi_cq_read(queue.completions.get(), entries.data(), most);
    if (count == -FI_EAGAIN) return false;
    if (count == -FI_EAVAIL) handle_errors(queue);
    if (count <= 0) return true;
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      auto& operation = *static_cast<Operation*>(entries[i].op_context);
      End& of = *operation.end;
      --of.under_way;
      if (of.closed) continue;
      if (operation.sending) {
        events[filled++] = {Event::What::sent, of.number, operation.slot, 0};
      } else {
        arrived(of, operation, entries[i].len);
      }
    }
    if (size_ == PortSize::few && static_cast<std::size_t>(count) < most) return true;
  }
  return true;
}

void LibfabricPort::handle_errors(Queue& queue) {
  fi_cq_err_entry entry{};
  while (fi_cq_readerr(queue.completions.get(), &entry, 0) > 0) {
    if (entry.op_context == nullptr) continue;
    End& of = *static_cast<Operation*>(entry.op_context)->end;
    --of.under_way;
    lost(of);
  }
}

void LibfabricPort::close(Connection number) {
  std::unique_ptr<End> end = std::move(ends_[number]);
  end->closed = true;
  mark_settled(*end);
  std::erase_if(events_, [&](const Event& event) { return event.connection == number; });
  end->endpoint.reset();
  end->peers.reset();
  end->region.reset();
  closed_.push_back(std::move(end));
}

}  // namespace rodeo::transport::fabric

namespace {

using namespace rodeo;
using namespace rodeo::transport;
using namespace rodeo::transport::fabric;

Result<Info> find_provider(const std::string& provider, const std::string& listen) {
  Info hints(fi_allocinfo());
  hints->caps = FI_MSG;
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->ep_attr->type = provider == "shm" ? FI_EP_RDM : FI_EP_MSG;
  hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
  hints->domain_attr->threading = FI_THREAD_DOMAIN;
  hints->fabric_attr->prov_name = ::strdup(provider.c_str());
  const bool addressed = !listen.empty() && provider != "shm";
  fi_info* found = nullptr;
  const int status = fi_getinfo(FI_VERSION(1, 17), addressed ? listen.c_str() : nullptr, addressed ? "0" : nullptr,
                                addressed ? FI_SOURCE | FI_NUMERICHOST : 0, hints.get(), &found);
  if (status != 0) {
    Error error = failure("transport.provider", "use the network provider `" + provider + "`", status,
                          "`fi_info -l` lists the providers of this machine; tcp works everywhere");
    if (addressed) error.what += " (at " + listen + ")";
    return std::unexpected(std::move(error));
  }
  return Info(found);
}

Result<std::unique_ptr<FabricPort>> open_port(const std::string& provider, const std::string& listen, PortSize size) {
  auto info = RODEO_TRY(find_provider(provider, listen));
  auto fabric = RODEO_TRY(made<fid_fabric>("open the fabric of `" + provider + "`", [&](fid_fabric** object) {
    return fi_fabric(info->fabric_attr, object, nullptr);
  }));
  auto domain = RODEO_TRY(made<fid_domain>("open the domain of `" + provider + "`", [&](fid_domain** object) {
    return fi_domain(fabric.get(), info.get(), object, nullptr);
  }));
  // Only tcp uses sockets, which have a descriptor to wait for.
  const PortSize of = provider == "tcp" ? size : PortSize::few;
  if (provider == "shm") return open_rdm_port(std::move(info), std::move(fabric), std::move(domain), of);
  return open_msg_port(std::move(info), std::move(fabric), std::move(domain), of, !listen.empty());
}

}  // namespace

/// The symbol that open_fabric() looks up.
extern "C" __attribute__((visibility("default"))) void rodeo_open_fabric(const std::string& provider,
                                                                         const std::string& listen, PortSize size,
                                                                         Result<std::unique_ptr<FabricPort>>& port) {
  port = open_port(provider, listen, size);
}
