#include "engine/denial_notes.h"

#include <deque>
#include <utility>

#include "engine/bans.h"

namespace weir {

// The denials of one request.
class DenialNotes::Request {
 public:
  Request(DenialNotes& owner, std::shared_ptr<const PolicyVersion> version,
          std::vector<Denied> denied, Counted counted)
      : owner_(owner),
        version_(std::move(version)),
        denied_(std::move(denied)),
        counted_(std::move(counted)) {}

  // May end this.
  void Start(SteadyTime until) {
    under_way_ = 1;
    for (const Denied& denied : denied_) {
      ++under_way_;
      counts_.emplace_back(*this, denied).Ask();
    }
    if (--under_way_ == 0) return End();
    const Duration rest = until - owner_.loop_.now().steady;
    if (rest <= Duration(0)) return Tell();
    timer_ = owner_.loop_.MakeTimer([this] { Tell(); });
    timer_->Start(rest);
  }

  // Once. Who is told may end everything, so nothing is looked at after that.
  void Tell() {
    const std::vector<Ban> bans = bans_;
    if (const Counted counted = std::exchange(counted_, nullptr)) counted(bans);
  }

 private:
  // One denial, question after question.
  class One final : public Completion {
   public:
    One(Request& request, const Denied& denied)
        : request_(request),
          number_(denied.number),
          count_(*request.version_, denied.denial, denied.subject) {}

    // May end everything.
    void Ask() {
      const Charge* const charge = request_.owner_.is_closed_ ? nullptr : count_.Next();
      if (charge == nullptr) {
        if (count_.length() > Duration(0)) request_.bans_.push_back({number_, count_.length()});
        return request_.EndOne();
      }
      group_ = Group{.charges = {charge, 1}, .decisions = {&decision_, 1}};
      request_.owner_.store_.Submit({&group_, 1}, request_.owner_.loop_.now(), *this);
    }
    void OnDecided(Group& group) noexcept override {
      if (group.error) return request_.EndOne();
      count_.Take(decision_);
      Ask();
    }

   private:
    Request& request_;
    const std::size_t number_;
    DenialCount count_;
    Group group_;
    Decision decision_;
  };

  void EndOne() {
    if (--under_way_ == 0) End();
  }
  void End() {
    const std::vector<Ban> bans = std::move(bans_);
    const Counted counted = std::move(counted_);
    owner_.requests_.erase(this);  // Ends this.
    if (counted) counted(bans);
  }

  DenialNotes& owner_;
  const std::shared_ptr<const PolicyVersion> version_;
  const std::vector<Denied> denied_;
  Counted counted_;  // None once it was called.
  std::deque<One> counts_;
  std::size_t under_way_ = 0;
  std::vector<Ban> bans_;
  std::unique_ptr<Timer> timer_;
};

DenialNotes::DenialNotes(Store& store, Loop& loop) : store_(store), loop_(loop) {}
DenialNotes::~DenialNotes() = default;

template <std::size_t kRoom>
std::vector<DenialNotes::Denied> DenialNotes::Of(CallWithRoom<kRoom>& call) {
  std::vector<Denied> denied;
  for (std::size_t i = call.NextDenial(0); i < call.rules(); i = call.NextDenial(i + 1)) {
    denied.push_back({i, call.DenialUnder(i), std::string(call.SubjectOf(i))});
  }
  return denied;
}
template std::vector<DenialNotes::Denied> DenialNotes::Of(Call&);
template std::vector<DenialNotes::Denied> DenialNotes::Of(SmallCall&);

void DenialNotes::Count(std::shared_ptr<const PolicyVersion> version, std::vector<Denied> denied,
                        SteadyTime until, Counted counted) {
  auto request =
      std::make_unique<Request>(*this, std::move(version), std::move(denied), std::move(counted));
  Request* const started = request.get();
  requests_.emplace(started, std::move(request));
  started->Start(until);
}

void DenialNotes::Close() {
  is_closed_ = true;
  std::vector<Request*> waiting;
  waiting.reserve(requests_.size());
  for (const auto& [request, owned] : requests_) waiting.push_back(request);
  for (Request* const request : waiting) request->Tell();
}

}  // namespace weir
