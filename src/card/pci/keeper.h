// The keeper: one process per host that holds real cards open for all others (README.md here, docs/protocols/keeper.md).
#pragma once

#include <chrono>
#include <filesystem>
#include <string>

#include "card/pci/function.h"

namespace rodeo::card::pci {

inline constexpr const char* kSharedKeeperSocket = "/run/rodeo/keeper.sock";  // root's

struct KeeperSettings {
  std::filesystem::path socket;   // empty: keeper_socket()
  std::string group;              // who may connect; empty: `rodeo` if there is such a group, else nobody but its user
  std::chrono::seconds idle{30};  // without clients and kept functions
  int ready = -1;                 // a pipe that is told "ready" or the reason why not, and then closed
  int stop = -1;                  // ends the keeper when it can be read
};

/// Serves until idle, told to stop, or SIGINT and SIGTERM (which it blocks in the calling thread). Fails if another keeper has the socket (card.held).
Result<void> run_keeper(const KeeperSettings& settings);

/// RODEO_KEEPER_SOCKET, else /run/rodeo/keeper.sock for root, else keeper.sock in the runtime directory.
Result<std::filesystem::path> keeper_socket();

/// The file in which the owners of a real card's DMA channels leave their process ids: beside the socket of the keeper that has or would have it. It is there
/// once the function has been opened.
Result<std::filesystem::path> function_lock_file(const Address& address);

}  // namespace rodeo::card::pci
