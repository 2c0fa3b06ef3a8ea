// The keeper: one process per host that holds real cards open for all others (README.md here,
// docs/reference/protocols/keeper.md).
#pragma once

#include <chrono>
#include <filesystem>
#include <string>

#include "card/pci/function.h"

namespace rodeo::card::pci {

inline constexpr const char* kSharedKeeperSocket = "/run/rodeo/keeper.sock";  // root's

struct KeeperSettings {
  std::filesystem::path socket;  // empty: keeper_socket()
  std::string group;  // the group that may connect; empty: group `rodeo` if it exists, else only the keeper's user
  std::chrono::seconds idle{30};  // ends after this time without clients and kept functions
  int ready = -1;                 // a pipe that gets "ready" or the error, and is then closed
  int stop = -1;                  // a descriptor that ends the keeper when it is readable
};

/// Serves until it is idle, or a client, `stop`, SIGINT or SIGTERM ends it (it blocks both signals). Error card.held if
/// another keeper has the socket.
Result<void> run_keeper(const KeeperSettings& settings);

/// RODEO_KEEPER_SOCKET, else /run/rodeo/keeper.sock for root, else keeper.sock in the runtime directory.
Result<std::filesystem::path> keeper_socket();

/// The file in which the owners of a real card's DMA channels write their process ids; it is beside the socket of the card's
/// keeper. The file exists once the function has been opened.
Result<std::filesystem::path> function_lock_file(const Address& address);

}  // namespace rodeo::card::pci
