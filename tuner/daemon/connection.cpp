#include "tuner/daemon/connection.h"

#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <chrono>
#include <thread>
#include <utility>

namespace tuner {
namespace {

using std::chrono::steady_clock;
constexpr std::chrono::seconds kPatience{10};

Connection dial(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(16 << 20);
  arguments.SetMaxSendMessageSize(16 << 20);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 10'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 5'000);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL,
                   1);  // a daemon that came back is a new one, not a backed-off old one
  Connection connection;
  connection.name = address;
  connection.channel = grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
  connection.jobs = v1::Jobs::NewStub(connection.channel);
  return connection;
}

bool answers(const Connection& connection, std::chrono::milliseconds patience) {
  return connection.channel->WaitForConnected(std::chrono::system_clock::now() + patience);
}

}  // namespace

Result<Connection> connect(const ConnectOptions& options) {
  const steady_clock::time_point limit = steady_clock::now() + kPatience;
  if (!options.daemon.empty()) {
    Connection connection = dial(options.daemon);
    if (!answers(connection, kPatience))
      return unavailable("daemon ", options.daemon, ": nobody answers. Expected there: tuner serve --listen ",
                         options.daemon);
    return connection;
  }
  if (!options.own_worker && access(options.db.c_str(), F_OK) != 0)
    return not_found(options.db,
                     ": there is no database yet. The first `tuner submit` makes it; another file: --db");
  while (true) {
    Result<std::unique_ptr<DaemonHost>> host =
        DaemonHost::start({.db = options.db, .own_worker = options.own_worker});
    if (host) {
      Connection connection = dial((*host)->addresses().back());
      connection.host = std::move(*host);
      connection.name = "this command";
      if (!answers(connection, kPatience))
        return unavailable(connection.name, ": its own socket does not answer");
      return connection;
    }
    if (host.status().code() != StatusCode::kAborted) return host.status();
    ASSIGN_OR_RETURN(const std::string socket, private_socket(options.db));
    Connection connection = dial(socket);
    connection.name = "the daemon on " + options.db;
    if (answers(connection, std::chrono::milliseconds(1'000))) return connection;
    if (steady_clock::now() >= limit)
      return unavailable(host.message(), ", and that process does not answer on ", socket);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

}  // namespace tuner
