// Serves the last status of a process and the state of its host as metrics over HTTP.
#pragma once

#include <cstdio>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "process/host_health.h"
#include "process/http_server.h"
#include "process/prometheus.h"

namespace rodeo::process {

template <typename Status>
class StatusMetrics {
 public:
  /// `listen`: "ADDRESS:PORT"; empty: no server. `text` turns a status into metrics, on the server's thread. Throws
  /// SetupError: process.http. `directories`: output directories, each once. The metrics include their free space.
  StatusMetrics(const std::string& listen, std::function<std::string(const Status&)> text,
                std::vector<std::string> directories = {})
      : text_(std::move(text)), directories_(std::move(directories)) {
    if (listen.empty()) return;
    server_.emplace(listen, metrics_answer([this] { return text_(last()) + host_metrics(directories_); }));
    std::fprintf(stderr, "metrics at http://%s/metrics\n", server_->address().c_str());
  }

  void show(const Status& status) {
    if (!server_) return;
    const std::lock_guard lock(mutex_);
    status_ = status;
  }

 private:
  Status last() {
    const std::lock_guard lock(mutex_);
    return status_;
  }

  std::function<std::string(const Status&)> text_;
  std::vector<std::string> directories_;
  std::mutex mutex_;
  Status status_;
  std::optional<HttpServer> server_;
};

}  // namespace rodeo::process
