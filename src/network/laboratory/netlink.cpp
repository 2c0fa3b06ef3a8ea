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

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <expected>
#include <vector>

#include "base/fd_socket.h"

namespace rodeo::network::laboratory {

namespace {

/// A traffic control message followed by attributes.
class NetlinkMessage {
 public:
  NetlinkMessage(std::uint16_t type, std::uint16_t flags, const tcmsg& about) : bytes_(NLMSG_LENGTH(sizeof about)) {
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

/// Sends a message; returns the first message of the answer, or the error number of the kernel's acknowledgement (0:
/// success).
std::expected<std::vector<char>, int> ask(NetlinkMessage& message) {
  const base::UniqueFd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  const auto& bytes = message.finish();
  if (!socket || send(socket.get(), bytes.data(), bytes.size(), 0) < 0) return std::unexpected(errno);
  std::vector<char> answer(65536);
  const ssize_t n = recv(socket.get(), answer.data(), answer.size(), 0);
  if (n < 0) return std::unexpected(errno);
  const auto* header = reinterpret_cast<const nlmsghdr*>(answer.data());
  if (!NLMSG_OK(header, static_cast<std::uint32_t>(n))) return std::unexpected(EPROTO);
  if (header->nlmsg_type != NLMSG_ERROR) return answer;
  if (header->nlmsg_len < NLMSG_LENGTH(sizeof(nlmsgerr))) return std::unexpected(EPROTO);
  return std::unexpected(-static_cast<const nlmsgerr*>(NLMSG_DATA(header))->error);
}

/// The error number of an acknowledgement; 0: success.
int acknowledged(NetlinkMessage& message) {
  const auto answer = ask(message);
  return answer ? EPROTO : answer.error();
}

tcmsg about_link(const std::string& link) {
  tcmsg about{};
  about.tcm_family = AF_UNSPEC;
  about.tcm_ifindex = static_cast<int>(if_nametoindex(link.c_str()));
  return about;
}

/// The first attribute of that type in the list at `at`; nullptr if there is no such attribute.
const rtattr* find_attribute(const rtattr* at, std::size_t bytes, std::uint16_t type) {
  for (auto left = static_cast<int>(bytes); RTA_OK(at, left); at = RTA_NEXT(at, left)) {
    if (at->rta_type == type) return at;
  }
  return nullptr;
}

}  // namespace

Result<void> attach_classifier(const std::string& link, Hook hook, int program) {
  tcmsg about = about_link(link);
  about.tcm_handle = TC_H_MAKE(TC_H_CLSACT, 0);
  about.tcm_parent = TC_H_CLSACT;
  NetlinkMessage discipline(RTM_NEWQDISC, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, about);
  discipline.attribute(TCA_KIND, "clsact", sizeof "clsact");
  if (const int error = acknowledged(discipline); error != 0 && error != EEXIST)
    return failed(fmt::format("cannot add clsact to {}", link), error);

  about.tcm_handle = 0;
  about.tcm_parent = TC_H_MAKE(TC_H_CLSACT, hook == Hook::egress ? TC_H_MIN_EGRESS : TC_H_MIN_INGRESS);
  about.tcm_info = TC_H_MAKE(1U << 16U, htons(ETH_P_ALL));
  NetlinkMessage filter(RTM_NEWTFILTER, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, about);
  filter.attribute(TCA_KIND, "bpf", sizeof "bpf");
  const std::size_t options = filter.begin(TCA_OPTIONS);
  const std::uint32_t flags = TCA_BPF_FLAG_ACT_DIRECT;
  filter.attribute(TCA_BPF_FD, &program, sizeof program);
  filter.attribute(TCA_BPF_NAME, "rodeo", sizeof "rodeo");
  filter.attribute(TCA_BPF_FLAGS, &flags, sizeof flags);
  filter.end(options);
  if (const int error = acknowledged(filter); error != 0)
    return failed(fmt::format("cannot attach an eBPF program to {}", link), error);
  return {};
}

Result<std::uint64_t> queue_drops(const std::string& link) {
  tcmsg about = about_link(link);
  about.tcm_parent = TC_H_ROOT;
  NetlinkMessage question(RTM_GETQDISC, NLM_F_ECHO, about);
  const auto answer = ask(question);
  if (!answer) return failed(fmt::format("cannot read the queue of {}", link), answer.error());
  const auto* header = reinterpret_cast<const nlmsghdr*>(answer->data());
  const auto* first = reinterpret_cast<const rtattr*>(answer->data() + NLMSG_SPACE(sizeof about));
  const rtattr* const statistics = find_attribute(
      first, header->nlmsg_len - std::min<std::size_t>(header->nlmsg_len, NLMSG_SPACE(sizeof about)), TCA_STATS2);
  const rtattr* const queue = statistics == nullptr ? nullptr
                                                    : find_attribute(static_cast<const rtattr*>(RTA_DATA(statistics)),
                                                                     RTA_PAYLOAD(statistics), TCA_STATS_QUEUE);
  if (queue == nullptr || RTA_PAYLOAD(queue) < sizeof(gnet_stats_queue))
    return failed(fmt::format("no counters of the queue of {}", link), EPROTO);
  gnet_stats_queue counters{};
  std::memcpy(&counters, RTA_DATA(queue), sizeof counters);
  return counters.drops;
}

}  // namespace rodeo::network::laboratory
