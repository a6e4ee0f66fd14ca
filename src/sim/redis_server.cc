#include "sim/redis_server.h"

#include <algorithm>
#include <array>
#include <utility>

#include "net/byte_buffer.h"
#include "net/resp/command_reader.h"
#include "sim/numbers.h"
#include "sim/redis_cluster.h"

namespace weir::sim {
namespace {

constexpr resp::CommandBounds kBounds{.arguments = 8192, .bytes = 1 << 22};
constexpr std::size_t kReadBytes = 65'536;

std::vector<std::string_view> KeysOf(Words words) {
  if (IsWord(words[0], "eval") || IsWord(words[0], "evalsha")) {
    const std::optional<std::int64_t> count =
        words.size() < 3 ? std::nullopt : ReadInteger(words[2]);
    if (!count || *count < 0 || static_cast<std::size_t>(*count) > words.size() - 3) return {};
    const Words keys = words.subspan(3, static_cast<std::size_t>(*count));
    return {keys.begin(), keys.end()};
  }
  const CommandTraits* const traits = Keyspace::Find(words[0]);
  if (traits == nullptr || !traits->has_key || words.size() < 2) return {};
  return {words[1]};
}

}  // namespace

// One connection.
class RedisServer::Session final : public StreamHandler {
 public:
  Session(RedisServer& server, std::uint64_t number, std::unique_ptr<Stream> stream)
      : server_(server),
        number_(number),
        stream_(std::move(stream)),
        is_known_(server.options_.password.empty()) {
    stream_->SetHandler(*this);
    ReadMore();
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() = default;

  void OnRead(std::size_t count) noexcept override {
    if (count == 0) return End();
    in_.Wrote(count);
    if (server_.slowness_ == Duration(0)) return Work();
    World& world = server_.world_;
    server_.busy_until_ = std::max(server_.busy_until_, world.elapsed()) + server_.slowness_;
    world.At(server_.busy_until_, [&server = server_, number = number_] {
      server.loop_.Ready([&server, number] {
        const auto found = server.sessions_.find(number);
        if (found != server.sessions_.end()) found->second->Work();
      });
    });
  }
  void OnHangUp() noexcept override { End(); }
  void OnWritable() noexcept override { Flush(); }
  void OnBroken() noexcept override { End(); }

  bool is_known() const { return is_known_; }
  void SetKnown() { is_known_ = true; }
  bool TakeAsking() { return std::exchange(is_asking_, false); }
  void SetAsking() { is_asking_ = true; }

 private:
  void ReadMore() {
    in_.Room(kReadBytes);
    stream_->Read(in_.free());
  }

  void Work() {
    std::vector<std::string_view> room(kBounds.arguments);
    for (;;) {
      const resp::CommandReading reading = reader_.Read(in_.bytes(), room, kBounds);
      if (reading.kind == resp::CommandReading::Kind::kIncomplete) break;
      if (reading.kind != resp::CommandReading::Kind::kCommand) {
        out_.Append("-ERR " + resp::ErrorText(reading) + "\r\n");
        Flush();
        return End();
      }
      if (reading.arguments != 0) Answer(Words(room).first(reading.arguments));
      in_.Consume(reading.used);
      if (ends_) {
        Flush();
        return End();
      }
    }
    if (Flush()) ReadMore();
  }

  void Answer(Words words) {
    ++server_.commands_;
    const bool is_script = IsWord(words[0], "evalsha") || IsWord(words[0], "eval");
    const Reply reply = server_.Answer(*this, words);
    if (is_script && server_.replies_to_spoil_ > 0) {
      --server_.replies_to_spoil_;
      out_.Append(server_.Spoiled());
    } else {
      Write(reply, out_);
    }
    if (IsWord(words[0], "quit")) ends_ = true;
  }

  // False if the session is over.
  bool Flush() {
    while (!out_.empty()) {
      const std::optional<std::size_t> count = stream_->Write(out_.view());
      if (!count) {
        End();
        return false;
      }
      if (*count == 0) {
        stream_->AwaitWritable();
        return true;
      }
      out_.Consume(*count);
    }
    return true;
  }

  // The object stays until nobody can be in it any more.
  void End() {
    stream_.reset();
    const auto found = server_.sessions_.find(number_);
    if (found == server_.sessions_.end()) return;
    server_.ended_.push_back(std::move(found->second));
    server_.sessions_.erase(found);
    server_.loop_.Post([&server = server_] { server.ended_.clear(); });
  }

  RedisServer& server_;
  const std::uint64_t number_;
  std::unique_ptr<Stream> stream_;
  resp::CommandReader reader_;
  ByteBuffer in_;
  ByteBuffer out_;
  bool is_known_;
  bool is_asking_ = false;
  bool ends_ = false;
};

RedisServer::RedisServer(World& world, Network& network, LuaEngine& engine, Options options)
    : world_(world),
      network_(network),
      options_(std::move(options)),
      loop_(world, nullptr, options_.clock),
      core_(engine) {
  Start(Data::kLost);
}

RedisServer::~RedisServer() { network_.StopListening(options_.address); }

RedisCore& RedisServer::core() {
  core_.SetTime(std::chrono::duration_cast<ServerTime>(loop_.ReadClock().wall.time_since_epoch()));
  return core_;
}

void RedisServer::Crash() {
  is_up_ = false;
  network_.StopListening(options_.address);
  network_.Reset(options_.address);
  for (auto& [number, owned] : std::exchange(sessions_, {})) ended_.push_back(std::move(owned));
  loop_.Post([this] { ended_.clear(); });
}

void RedisServer::Start(Data data) {
  if (data == Data::kLost) core_.keyspace().Clear();
  core_.ForgetScripts();
  is_up_ = true;
  ++starts_;
  network_.Listen(options_.address, loop_, *this);
}

void RedisServer::SetReadOnly(bool is_read_only) {
  is_read_only_ = is_read_only;
  RefuseWrites();
}

void RedisServer::SetUnableToSave(bool is_unable) {
  is_unable_to_save_ = is_unable;
  RefuseWrites();
}

void RedisServer::RefuseWrites() {
  core_.RefuseWrites(
      is_read_only_ ? "READONLY You can't write against a read only replica."
      : is_unable_to_save_
          ? "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to "
            "persist to disk. Commands that may modify the data set are disabled."
          : "");
}

std::vector<std::string> RedisServer::Evict(int count, Random& random) {
  std::vector<std::string> keys = core().keyspace().Keys();
  std::vector<std::string> gone;
  while (count-- > 0 && !keys.empty()) {
    const std::size_t at = random.Index(keys.size());
    core_.keyspace().Erase(keys[at]);
    gone.push_back(std::move(keys[at]));
    keys.erase(keys.begin() + static_cast<std::ptrdiff_t>(at));
  }
  return gone;
}

void RedisServer::CopyDataFrom(RedisServer& other) { core_.keyspace() = other.core().keyspace(); }

void RedisServer::Join(RedisCluster* cluster) {
  cluster_ = cluster;
  core_.SetLocal(nullptr);
  if (cluster == nullptr) return;
  core_.SetLocal([this](std::string_view key) { return cluster_->IsLocal(*this, key); });
}

void RedisServer::OnAccept(std::unique_ptr<Stream> stream) {
  if (!is_up_) return;
  const std::uint64_t number = ++accepted_;
  sessions_.emplace(number, std::make_unique<Session>(*this, number, std::move(stream)));
}

Reply RedisServer::Answer(Session& session, Words words) {
  const std::string_view name = words[0];
  const bool was_asking = session.TakeAsking();
  if (IsWord(name, "auth") || IsWord(name, "hello") || IsWord(name, "quit")) {
    return AnswerAccess(session, words);
  }
  if (!session.is_known() || is_revoked_) {
    return Reply::Error("NOAUTH Authentication required.");
  }
  if (IsWord(name, "select")) {
    if (words.size() == 2 && (words[1] == "0" || cluster_ == nullptr)) return Reply::Ok();
    return Reply::Error("ERR SELECT is not allowed in cluster mode");
  }
  if (IsWord(name, "client") || IsWord(name, "readonly") || IsWord(name, "readwrite")) {
    return Reply::Ok();
  }
  if (IsWord(name, "info") && !error_.starts_with("BUSY")) return AnswerInfo();
  if (IsWord(name, "sentinel")) return AnswerSentinel(words);
  if (IsWord(name, "cluster")) {
    if (cluster_ == nullptr) return Reply::Error("ERR This instance has cluster support disabled");
    return cluster_->Slots();
  }
  if (IsWord(name, "asking")) {
    session.SetAsking();
    return Reply::Ok();
  }
  if (was_asking) session.SetAsking();
  return AnswerData(session, words);
}

Reply RedisServer::AnswerAccess(Session& session, Words words) {
  if (IsWord(words[0], "quit")) return Reply::Ok();
  if (IsWord(words[0], "hello")) return Reply::Error("NOPROTO unsupported protocol version");
  const bool has_user = words.size() == 3;
  if (words.size() != 2 && !has_user) {
    return Reply::Error("ERR wrong number of arguments for 'auth' command");
  }
  if (options_.password.empty() && !has_user) {
    return Reply::Error(
        "ERR AUTH <password> called without any password configured for the default user. Are you "
        "sure your configuration is correct?");
  }
  const std::string_view user = has_user ? words[1] : std::string_view("default");
  if (is_revoked_ || user != options_.user || words.back() != options_.password) {
    return Reply::Error("WRONGPASS invalid username-password pair or user is disabled.");
  }
  session.SetKnown();
  return Reply::Ok();
}

Reply RedisServer::AnswerData(Session& session, Words words) {
  const bool is_asking = session.TakeAsking();
  const std::string_view name = words[0];
  if (IsWord(name, "ping") && error_.empty()) return Reply::Status("PONG");
  RedisCore& data = core();
  if (cluster_ != nullptr) {
    if (std::optional<Reply> refusal = cluster_->Refusal(*this, KeysOf(words), is_asking)) {
      return std::move(*refusal);
    }
  }
  if (!error_.empty()) return Reply::Error(error_);
  if (IsWord(name, "role")) {
    return Reply::Array({Reply::Bulk(is_read_only_ ? "slave" : "master")});
  }
  if (IsWord(name, "config")) {
    return Reply::Array({Reply::Bulk("maxmemory-policy"), Reply::Bulk(options_.eviction)});
  }
  return data.Execute(words);
}

Reply RedisServer::AnswerInfo() const {
  const std::string run = LuaEngine::DigestOf(options_.address + std::to_string(starts_));
  return Reply::Bulk("# Server\r\nredis_version:" + options_.version + "\r\nrun_id:" + run +
                     "\r\n# Memory\r\nmaxmemory_policy:" + options_.eviction +
                     "\r\n# Persistence\r\nloading:0\r\naof_enabled:1\r\n# Replication\r\nrole:" +
                     (is_read_only_ ? "slave" : "master") + "\r\nconnected_slaves:0\r\n");
}

Reply RedisServer::AnswerSentinel(Words words) const {
  if (masters_.empty()) return Reply::Error("ERR unknown command 'sentinel'");
  if (words.size() != 3) return Reply::Error("ERR wrong number of arguments");
  const auto found = masters_.find(std::string(words[2]));
  if (found == masters_.end()) return {.kind = Reply::Kind::kNilArray};
  const Endpoint endpoint = *Endpoint::Parse(found->second);
  return Reply::Array({Reply::Bulk(endpoint.host), Reply::Bulk(std::to_string(endpoint.port))});
}

std::string RedisServer::Spoiled() {
  switch (world_.random().Index(6)) {
    case 0:
      return "HTTP/1.1 400 Bad Request\r\n\r\n";
    case 1:
      return "$99999999999999\r\n";
    case 2:
      return "+OK\r\n";
    case 3:
      return "*3\r\n:1\r\n$-1\r\n*0\r\n";
    case 4:
      return ":7\r\n";
    default: {
      std::string noise;
      for (int i = 0; i < 20; ++i) noise += static_cast<char>(world_.random().Index(256));
      return noise + "\r\n";
    }
  }
}

}  // namespace weir::sim
