#include "frontend/http/http_protocol.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>

#include "frontend/error_table.h"
#include "frontend/http/endpoints.h"
#include "frontend/http/forward_auth.h"
#include "frontend/http/late_replies.h"
#include "frontend/http/routes.h"
#include "frontend/http/workbench.h"
#include "frontend/named_rules.h"
#include "net/http/request_reader.h"

namespace weir {
namespace {

// How long a forward-auth request is held that a rule queues, unless the policy says.
constexpr Duration kQueueHold = std::chrono::seconds(1);

constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

std::size_t CodeNumberOf(int status) noexcept {
  if (status == 200) return kReplyOk;
  if (status == 429) return kReplyLimited;
  std::array<char, 12> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), status).ptr;
  return ReplyCodeNumber({text.data(), static_cast<std::size_t>(end - text.data())});
}

std::string_view ErrorNameOf(int status) noexcept {
  switch (status) {
    case 404:
      return RowOf(ErrorCode::kNotFound).name;
    case 408:
      return RowOf(ErrorCode::kDeadline).name;
    case 413:
    case 431:
      return RowOf(ErrorCode::kTooLarge).name;
    default:
      return RowOf(ErrorCode::kInvalidArgument).name;
  }
}

Refusal RefusalOf(int status) noexcept {
  switch (status) {
    case 413:
      return Refusal::kBody;
    case 431:
      return Refusal::kHeader;
    default:
      return Refusal::kProtocol;
  }
}

std::string_view Trimmed(std::string_view text) noexcept {
  while (!text.empty() && http_bytes::IsBlank(text.front())) text.remove_prefix(1);
  while (!text.empty() && http_bytes::IsBlank(text.back())) text.remove_suffix(1);
  return text;
}

// Takes the first of several off the list, with the separator behind it.
std::string_view TakeOff(std::string_view& list, char separator) noexcept {
  const std::string_view first = list.substr(0, list.find(separator));
  list.remove_prefix(std::min(list.size(), first.size() + 1));
  return Trimmed(first);
}

// Whether Accept names problem+json, and not only to say that it is not wanted: q=0.
bool AcceptsProblem(std::string_view accept) noexcept {
  constexpr std::string_view kProblemType = "application/problem+json";
  if (accept.size() < kProblemType.size()) return false;
  while (!accept.empty()) {
    std::string_view parameters = TakeOff(accept, ',');
    if (!http_bytes::IsSameName(TakeOff(parameters, ';'), kProblemType)) continue;
    bool is_wanted = true;
    while (!parameters.empty()) {
      const std::string_view parameter = TakeOff(parameters, ';');
      const bool is_weight = parameter.starts_with("q=") || parameter.starts_with("Q=");
      if (is_weight && parameter.find_first_not_of("0.", 2) == std::string_view::npos) {
        is_wanted = false;
      }
    }
    if (is_wanted) return true;
  }
  return false;
}

// What stands behind the path of forward-auth, with the query.
std::string_view BelowAuth(const HttpHead& head, const HttpTarget& target) noexcept {
  const auto before = static_cast<std::size_t>(target.path.data() - head.target.data());
  return head.target.substr(before + kAuthPath.size());
}

bool AsksStore(HttpEndpoint endpoint) noexcept {
  return endpoint == HttpEndpoint::kCheckBatch || HttpEndpoints::IsQuestion(endpoint);
}

class HttpProtocol final : public Protocol {
 public:
  explicit HttpProtocol(Exchange& exchange) noexcept
      : exchange_(exchange),
        door_(exchange.door()),
        replies_(exchange.replies()),
        late_(exchange) {}

  Progress OnInput(std::span<char> input) noexcept override {
    HttpWorkbench& bench = Bench();
    const ServiceLimits& limits = door_.desk.settings->limits;
    const HttpRequestReader::Bounds bounds = {.header = static_cast<std::size_t>(limits.header),
                                              .body = static_cast<std::size_t>(limits.body)};
    Turn turn{.bench = bench};
    while (!replies_.closing() && !turn.ends && !replies_.IsFull()) {
      const std::span<char> rest = input.subspan(turn.used);
      if (rest.empty()) break;
      const HttpRequestReader::Outcome outcome = reader_.Read(rest, bounds, bench.head);
      if (outcome == HttpRequestReader::Outcome::kIncomplete) {
        if (reader_.TakeContinue()) {
          Flush(turn);
          replies_.next().Append(kContinue);
        }
        break;
      }
      if (outcome == HttpRequestReader::Outcome::kFault) {
        OnFault(turn);
        turn.used = input.size();
        break;
      }
      turn.used += reader_.size();
      Take(turn, input.subspan(turn.used).size());
    }
    Flush(turn);
    if (turn.ends) replies_.CloseWhenSent();
    begun_ = turn.used < input.size();
    return {.used = turn.used, .wants = reader_.wants(), .decided = turn.decided};
  }

  void OnAnswered(const ReplyPlace& place, const Told& told) noexcept override {
    const LateTag tag = LateTag::Of(place.tag);
    ReplyForm form = tag.form;
    // The last request before the end of the service says so, if it came before that was known.
    const bool is_last = exchange_.draining() && tag.number == taken_ && !begun_;
    if (is_last) form.persistence = HttpPersistence::kClose;
    const std::optional<int> status = late_.Fill(place, form, told);
    if (!status) return;
    Count(*status);
    if (is_last) replies_.CloseWhenSent();
  }

  void OnTimeout() noexcept override {
    if (!begun_) return;
    constexpr int kTimeout = 408;
    Say(Bench(),
        {.status = kTimeout,
         .name = ErrorNameOf(kTimeout),
         .message = "the request did not come in time, or not whole"},
        {.persistence = HttpPersistence::kClose});
  }

 private:
  // One call of OnInput.
  struct Turn {
    HttpWorkbench& bench;
    std::size_t used = 0;
    std::size_t pending = 0;  // Checks that were read and not decided yet.
    std::uint32_t decided = 0;
    bool ends = false;  // The connection, after what has been taken up.
  };

  HttpWorkbench& Bench() const noexcept { return HttpWorkbench::Mine(door_.desk.loop.now().wall); }

  void Count(int status) noexcept { door_.metrics.requests[CodeNumberOf(status)].Add(); }

  void Say(HttpWorkbench& bench, const ReplyWriter::ErrorReply& error, const ReplyForm& form) {
    bench.writer.Refuse(replies_.next(), error, form);
    Count(error.status);
  }

  void OnFault(Turn& turn) {
    const HttpFault& fault = reader_.fault();
    Flush(turn);
    door_.metrics.Refused(RefusalOf(fault.status));
    Say(turn.bench,
        {.status = fault.status, .name = ErrorNameOf(fault.status), .message = fault.message},
        {.persistence = HttpPersistence::kClose});
    turn.ends = true;
  }

  // What the reply looks like, and whether the connection ends with it. While the service drains
  // it ends with the first request that has nothing behind it: what came before is answered.
  ReplyForm FormFor(Turn& turn, const HttpHead& head, std::size_t behind) const noexcept {
    ReplyForm form{.problem = AcceptsProblem(head.accept), .without_body = head.method == "HEAD"};
    if (!head.keep_alive || (exchange_.draining() && behind == 0)) {
      form.persistence = HttpPersistence::kClose;
      turn.ends = true;
    } else if (head.version == HttpVersion::k10) {
      form.persistence = HttpPersistence::kKeepAlive;
    }
    return form;
  }

  // Answers the request that was read, or puts it with those that are decided together.
  void Take(Turn& turn, std::size_t behind) {
    const HttpHead& head = turn.bench.head;
    const ReplyForm form = FormFor(turn, head, behind);
    ++taken_;
    const bool plain = head.target == kHttpRoutes[0].path && head.method == "POST";
    const HttpTarget target = plain ? HttpTarget{.path = head.target} : SplitTarget(head.target);
    const HttpRoute* const route = plain ? kHttpRoutes.data() : FindRoute(target.path);
    if (!IsServed(turn, route, form) || !MayDo(turn, *route, form)) return;
    if (route->endpoint == HttpEndpoint::kAuth) return TakeAuth(turn, target, form);
    const HttpEndpoints::Call call{
        .endpoint = route->endpoint,
        .query = target.query,
        .body = {.json = {reader_.body().data(), reader_.body().size()}, .behind = behind},
        .form = form};
    if (route->endpoint == HttpEndpoint::kCheck) return TakeCheck(turn, call);
    Flush(turn);
    HttpEndpoints endpoints(door_.desk, turn.bench, replies_.next());
    if (door_.desk.asks_later() && AsksStore(route->endpoint)) {
      const auto error = late_.Ask(endpoints, {.http = call, .number = taken_});
      if (error) Count(endpoints.Refuse(*error, form).status);
      return;
    }
    const EndpointReply reply = endpoints.Serve(call);
    Count(reply.status);
    turn.decided += reply.decided;
  }

  bool IsServed(Turn& turn, const HttpRoute* route, const ReplyForm& form) {
    constexpr int kNotFound = 404;
    constexpr int kWrongMethod = 405;
    constexpr int kNotImplemented = 501;
    const std::string_view method = turn.bench.head.method;
    if (route != nullptr && IsAllowed(*route, method)) return true;
    Flush(turn);
    if (method == "CONNECT") {
      turn.ends = true;
      ReplyForm last = form;
      last.persistence = HttpPersistence::kClose;
      Say(turn.bench,
          {.status = kNotImplemented,
           .name = ErrorNameOf(kNotImplemented),
           .message = "there are no tunnels here"},
          last);
    } else if (route == nullptr) {
      Say(turn.bench,
          {.status = kNotFound,
           .name = ErrorNameOf(kNotFound),
           .message = "there is no such path; GET /openapi.json tells which there are"},
          form);
    } else {
      Say(turn.bench,
          {.status = kWrongMethod,
           .name = ErrorNameOf(kWrongMethod),
           .message = route->is_get ? "this path wants GET" : "this path wants POST",
           .header = route->is_get ? "Allow: GET, HEAD\r\n" : "Allow: POST\r\n"},
          form);
    }
    return false;
  }

  bool MayDo(Turn& turn, const HttpRoute& route, const ReplyForm& form) {
    Right right = door_.access.WithoutToken();
    if (right >= route.right) return true;
    const HttpHead& head = turn.bench.head;
    // There Authorization is mostly that of somebody else, whose business it is.
    const bool is_auth = route.endpoint == HttpEndpoint::kAuth;
    if (is_auth && !head.weir_token.empty()) right = door_.access.WithToken(head.weir_token);
    if (right >= route.right) return true;
    const std::string_view token = BearerToken(head.authorization);
    if (!token.empty()) right = std::max(right, door_.access.WithToken(token));
    if (right >= route.right) return true;
    Flush(turn);
    const bool unknown = right == Right::kNone;
    const ErrorRow& row = RowOf(unknown ? ErrorCode::kUnauthenticated : ErrorCode::kForbidden);
    if (unknown || !token.empty()) door_.metrics.Refused(Refusal::kToken);
    Say(turn.bench,
        {.status = row.http,
         .name = row.name,
         .message = !unknown  ? "this needs the right to manage"
                    : is_auth ? "a token is needed: X-Weir-Token and the token"
                              : "a token is needed: Authorization: Bearer and the token",
         .header = unknown ? "WWW-Authenticate: Bearer\r\n" : ""},
        form);
    return false;
  }

  void TakeCheck(Turn& turn, const HttpEndpoints::Call& call) {
    const bool large = call.body.json.size() > HttpWorkbench::kMostPendingBytes;
    if (large) Flush(turn);
    PendingCheck& check = turn.bench.pending(turn.pending);
    RequestBodyReader& reader = large ? turn.bench.reader : check.reader;
    auto error = reader.Read(call.body, {.allowed = kCheckFields, .may_wait = true}, check.body);
    if (!error && !check.body.request.rules.empty()) {
      error = FindUnknownRule(door_.desk.engine, check.body.request);
    }
    if (error) {
      Flush(turn);
      Count(
          HttpEndpoints(door_.desk, turn.bench, replies_.next()).Refuse(*error, call.form).status);
      return;
    }
    check.form = call.form;
    check.number = taken_;
    if (check.body.wait > Duration(0)) return Wait(turn, check);
    ++turn.pending;
    if (large || turn.pending == HttpWorkbench::kMostPending) Flush(turn);
  }

  // Found out once for a connection, and again when the policy has changed.
  bool IsPeerTrusted() {
    if (judged_by_ != door_.desk.settings) {
      judged_by_ = door_.desk.settings;
      is_peer_trusted_ = judged_by_->identity->Trusts(exchange_.peer());
    }
    return is_peer_trusted_;
  }

  // With what was read ahead, and at once: it refers to the head, which the next request replaces.
  void TakeAuth(Turn& turn, const HttpTarget& target, const ReplyForm& form) {
    HttpWorkbench& bench = turn.bench;
    const Settings& settings = *door_.desk.settings;
    PendingCheck& check = bench.pending(turn.pending);
    check.form = form;
    check.form.is_auth = true;
    check.form.denies_by_403 = WantsDenialsBy403(target.query);
    check.number = taken_;
    const std::string_view peer = exchange_.peer();
    const Result<Incoming> original = OriginalRequest({.head = bench.head,
                                                       .below = BelowAuth(bench.head, target),
                                                       .peer = peer,
                                                       .trusted = IsPeerTrusted()},
                                                      bench.path);
    if (!original) {
      Flush(turn);
      HttpEndpoints endpoints(door_.desk, bench, replies_.next());
      return Count(endpoints.Refuse(original.error(), form).status);
    }
    check.body.Clear();
    check.body.request = settings.identity->Identify(*original, bench.identity);
    if (settings.queues && door_.desk.engine.MayQueue(check.body.request)) {
      Flush(turn);
      check.body.wait = settings.queue_hold.value_or(kQueueHold);
      return late_.Queue(check);
    }
    ++turn.pending;
    Flush(turn);
  }

  void Wait(Turn& turn, PendingCheck& check) {
    Flush(turn);
    late_.Wait(check);
  }

  // Asks about what was read ahead; the replies come later.
  void AskPending(Turn& turn) {
    for (std::size_t i = 0; i < turn.pending; ++i) late_.AskCheck(turn.bench.pending(i));
    turn.pending = 0;
  }

  // Decides what was read ahead, and writes the replies.
  void Flush(Turn& turn) {
    if (turn.pending == 0) return;
    if (door_.desk.asks_later()) return AskPending(turn);
    HttpWorkbench& bench = turn.bench;
    const Now now = door_.desk.loop.now();
    const std::span<BatchRequest> batch(bench.batch.data(), turn.pending);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      PendingCheck& check = bench.pending(i);
      batch[i] = {.request = check.body.request, .cost = check.body.cost, .each = check.each};
    }
    door_.desk.engine.CheckBatch(batch, now);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const Answer& answer = batch[i].answer;
      const std::size_t told = std::min(answer.rules, batch[i].each.size());
      Count(bench.writer.Decide(replies_.next(),
                                {.decision = answer.decision,
                                 .message = answer.message,
                                 .each = batch[i].each.first(told),
                                 .now = now},
                                *door_.desk.settings, bench.pending(i).form));
    }
    turn.decided += static_cast<std::uint32_t>(turn.pending);
    turn.pending = 0;
  }

  Exchange& exchange_;
  Door& door_;
  Replies& replies_;
  LateReplies late_;
  HttpRequestReader reader_{};
  std::uint64_t taken_ = 0;  // Requests so far.
  bool begun_ = false;       // There are bytes of a request that is not complete.
  bool is_peer_trusted_ = false;
  std::shared_ptr<const Settings> judged_by_{};  // Kept, so that no other can be taken for it.
};

}  // namespace

std::unique_ptr<Protocol> MakeHttpProtocol(Exchange& exchange) {
  return std::make_unique<HttpProtocol>(exchange);
}

}  // namespace weir
