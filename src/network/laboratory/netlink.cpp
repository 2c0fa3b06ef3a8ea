#include "network/laboratory/netlink.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <linux/gen_stats.h>
#include <linux/if_ether.h>
#include <linux/netlink.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <vector>

#include "base/fd_socket.h"

namespace rodeo::network::laboratory {

namespace {

/// A traffic control message with attributes behind it.
class Message {
 public:
  Message(std::uint16_t type, std::uint16_t flags, const tcmsg& about) : bytes_(NLMSG_LENGTH(sizeof about)) {
    header().nlmsg_type = type;
    header().nlmsg_flags = static_cast<__u16>(NLM_F_REQUEST | flags);
    std::memcpy(NLMSG_DATA(bytes_.data()), &about, sizeof about);
  }
  void attribute(std::uint16_t type, const void* data, std::size_t size) {
    const std::size_t at = NLMSG_ALIGN(bytes_.size());
    bytes_.resize(at + RTA_LENGTH(size));
    const rtattr head{static_cast<unsigned short>(RTA_LENGTH(size)), type};
    std::memcpy(bytes_.data() + at, &head, sizeof head);
    if (size > 0) std::memcpy(bytes_.data() + at + RTA_LENGTH(0), data, size);
  }
  std::size_t begin(std::uint16_t type) {
    const std::size_t at = NLMSG_ALIGN(bytes_.size());
    attribute(type, nullptr, 0);
    return at;
  }
  void end(std::size_t at) {
    const auto size = static_cast<unsigned short>(bytes_.size() - at);
    std::memcpy(bytes_.data() + at + offsetof(rtattr, rta_len), &size, sizeof size);
  }
  const std::vector<char>& finish() {
    header().nlmsg_len = static_cast<__u32>(bytes_.size());
    return bytes_;
  }

 private:
  nlmsghdr& header() { return *reinterpret_cast<nlmsghdr*>(bytes_.data()); }
  std::vector<char> bytes_;
};

std::unexpected<Error> failed(const std::string& what, int reason) {
  return std::unexpected(Error{"network.laboratory", fmt::format("{}: {}", what, std::strerror(reason))});
}

Result<base::UniqueFd> open_route_socket() {
  base::UniqueFd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (!socket) return failed("cannot open a netlink socket", errno);
  return socket;
}

/// Sends and returns the error number that the kernel acknowledges with.
int ask(int socket, Message& message) {
  const auto& bytes = message.finish();
  if (send(socket, bytes.data(), bytes.size(), 0) < 0) return errno;
  std::array<char, 8192> answer{};
  const ssize_t n = recv(socket, answer.data(), answer.size(), 0);
  if (n < static_cast<ssize_t>(NLMSG_LENGTH(sizeof(nlmsgerr)))) return n < 0 ? errno : EPROTO;
  const auto* header = reinterpret_cast<const nlmsghdr*>(answer.data());
  if (header->nlmsg_type != NLMSG_ERROR) return EPROTO;
  return -static_cast<const nlmsgerr*>(NLMSG_DATA(header))->error;
}

tcmsg about_link(const std::string& link) {
  tcmsg about{};
  about.tcm_family = AF_UNSPEC;
  about.tcm_ifindex = static_cast<int>(if_nametoindex(link.c_str()));
  return about;
}

/// The queue statistics of one qdisc in a dump, if it is the link's root.
std::optional<QueueCounters> counters_of(const nlmsghdr* header, int link) {
  if (header->nlmsg_len < NLMSG_LENGTH(sizeof(tcmsg))) return std::nullopt;
  const auto* about = static_cast<const tcmsg*>(NLMSG_DATA(header));
  if (about->tcm_ifindex != link || about->tcm_parent != TC_H_ROOT) return std::nullopt;
  auto left = static_cast<int>(header->nlmsg_len - NLMSG_LENGTH(sizeof(tcmsg)));
  for (const auto* at = reinterpret_cast<const rtattr*>(reinterpret_cast<const char*>(about) + NLMSG_ALIGN(sizeof *about));
       RTA_OK(at, left); at = RTA_NEXT(at, left)) {
    if (at->rta_type != TCA_STATS2) continue;
    auto inner = static_cast<int>(RTA_PAYLOAD(at));
    for (const auto* part = static_cast<const rtattr*>(RTA_DATA(at)); RTA_OK(part, inner); part = RTA_NEXT(part, inner)) {
      if (part->rta_type != TCA_STATS_QUEUE || RTA_PAYLOAD(part) < sizeof(gnet_stats_queue)) continue;
      gnet_stats_queue queue{};
      std::memcpy(&queue, RTA_DATA(part), sizeof queue);
      return QueueCounters{.drops = queue.drops, .backlog_bytes = queue.backlog};
    }
  }
  return std::nullopt;
}

}  // namespace

Result<void> attach_classifier(const std::string& link, Hook hook, int program) {
  auto socket = RODEO_TRY(open_route_socket());
  tcmsg about = about_link(link);
  about.tcm_handle = TC_H_MAKE(TC_H_CLSACT, 0);
  about.tcm_parent = TC_H_CLSACT;
  Message discipline(RTM_NEWQDISC, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, about);
  discipline.attribute(TCA_KIND, "clsact", sizeof "clsact");
  if (const int error = ask(socket.get(), discipline); error != 0 && error != EEXIST)
    return failed(fmt::format("cannot add clsact to {}", link), error);

  about.tcm_handle = 0;
  about.tcm_parent = TC_H_MAKE(TC_H_CLSACT, hook == Hook::egress ? TC_H_MIN_EGRESS : TC_H_MIN_INGRESS);
  about.tcm_info = TC_H_MAKE(1U << 16U, htons(ETH_P_ALL));
  Message filter(RTM_NEWTFILTER, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, about);
  filter.attribute(TCA_KIND, "bpf", sizeof "bpf");
  const std::size_t options = filter.begin(TCA_OPTIONS);
  const std::uint32_t flags = TCA_BPF_FLAG_ACT_DIRECT;
  filter.attribute(TCA_BPF_FD, &program, sizeof program);
  filter.attribute(TCA_BPF_NAME, "rodeo", sizeof "rodeo");
  filter.attribute(TCA_BPF_FLAGS, &flags, sizeof flags);
  filter.end(options);
  if (const int error = ask(socket.get(), filter); error != 0)
    return failed(fmt::format("cannot attach an eBPF program to {}", link), error);
  return {};
}

Result<QueueCounters> queue_counters(const std::string& link) {
  auto socket = RODEO_TRY(open_route_socket());
  const tcmsg about = about_link(link);
  Message dump(RTM_GETQDISC, NLM_F_DUMP, about);
  const auto& bytes = dump.finish();
  if (send(socket.get(), bytes.data(), bytes.size(), 0) < 0) return failed("cannot ask for queues", errno);
  std::optional<QueueCounters> found;
  std::vector<char> answer(65536);
  for (;;) {
    const ssize_t n = recv(socket.get(), answer.data(), answer.size(), 0);
    if (n < 0) return failed("cannot read queues", errno);
    auto left = static_cast<std::uint32_t>(n);
    for (const auto* header = reinterpret_cast<const nlmsghdr*>(answer.data()); NLMSG_OK(header, left);
         header = NLMSG_NEXT(header, left)) {
      if (header->nlmsg_type == NLMSG_DONE || header->nlmsg_type == NLMSG_ERROR) {
        if (!found) return failed(fmt::format("no queue of link {}", link), ENODEV);
        return *found;
      }
      if (header->nlmsg_type == RTM_NEWQDISC && !found) found = counters_of(header, about.tcm_ifindex);
    }
  }
}

}  // namespace rodeo::network::laboratory
