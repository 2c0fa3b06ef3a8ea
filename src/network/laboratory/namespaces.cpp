#include "network/laboratory/namespaces.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <thread>

#include "base/child_process.h"

namespace rodeo::network::laboratory {

namespace {

std::unexpected<Error> failed(const std::string& what) {
  return std::unexpected(Error{"network.laboratory", fmt::format("{}: {}", what, std::strerror(errno))});
}

/// A memory file with the text, positioned at its start.
base::UniqueFd text_file(const std::string& text) {
  base::UniqueFd file(memfd_create("rodeo-lab", MFD_CLOEXEC));
  if (!file) return file;
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = write(file.get(), text.data() + done, text.size() - done);
    if (n <= 0) return {};
    done += static_cast<std::size_t>(n);
  }
  lseek(file.get(), 0, SEEK_SET);
  return file;
}

}  // namespace

Result<NetworkNamespace> NetworkNamespace::make() {
  NetworkNamespace made;
  int reason = 0;
  std::thread([&] {
    if (unshare(CLONE_NEWNET) == 0) made.fd_ = base::UniqueFd(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
    reason = errno;
  }).join();
  if (made.fd_) return made;
  if (reason == EPERM)
    return std::unexpected(
        Error{"network.needs_root", "the laboratory makes network namespaces, links and eBPF programs, which needs root", "",
              "run it as root (sudo), or on hosts of your own with --hosts FILE, which does not need root"});
  errno = reason;
  return failed("cannot make a network namespace");
}

std::string NetworkNamespace::path() const { return fmt::format("/proc/{}/fd/{}", getpid(), fd_.get()); }

Result<void> NetworkNamespace::inside(const std::function<Result<void>()>& work) const {
  Result<void> result;
  std::thread([&] {
    result = setns(fd_.get(), CLONE_NEWNET) == 0 ? work() : Result<void>(failed("cannot enter a network namespace"));
  }).join();
  return result;
}

Result<void> NetworkNamespace::batch(const std::string& program, const std::string& lines) const {
  const base::UniqueFd input = text_file(lines);
  const base::UniqueFd said = text_file({});
  if (!input || !said) return failed("cannot make a temporary file in memory");
  auto child = base::ChildProcess::start({.command = {program, "-force", "-batch", "-"},
                                          .in = input.get(),
                                          .out = said.get(),
                                          .err = said.get(),
                                          .first = [this] { return setns(fd_.get(), CLONE_NEWNET) == 0; }});
  if (!child) return std::unexpected(Error{"network.laboratory", child.error().what, "", "the package iproute2 has it"});
  if (child->wait() == 0) return {};
  std::array<char, 1000> text{};
  const ssize_t n = pread(said.get(), text.data(), text.size(), 0);
  return std::unexpected(
      Error{"network.laboratory", fmt::format("`{}` refused: {}", program,
                                              std::string(text.data(), static_cast<std::size_t>(std::max<ssize_t>(n, 0))))});
}

Result<void> write_setting(const std::string& name, const std::string& value) {
  std::ofstream file("/proc/sys/net/" + name);
  file << value << std::flush;
  if (!file) return failed(fmt::format("cannot set net/{} to {}", name, value));
  return {};
}

Result<void> no_large_packets(const std::string& link) {
  const base::UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket) return failed("cannot open a socket");
  for (const std::uint32_t command :
       {std::uint32_t{ETHTOOL_STSO}, std::uint32_t{ETHTOOL_SGSO}, std::uint32_t{ETHTOOL_SGRO}}) {
    ethtool_value value{command, 0};
    ifreq request{};
    std::snprintf(request.ifr_name, sizeof request.ifr_name, "%s", link.c_str());
    request.ifr_data = reinterpret_cast<char*>(&value);
    if (ioctl(socket.get(), SIOCETHTOOL, &request) != 0)
      return failed(fmt::format("cannot turn large packets off on {}", link));
  }
  return {};
}

}  // namespace rodeo::network::laboratory
