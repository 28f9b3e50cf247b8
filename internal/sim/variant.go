package sim

import (
	"math/rand/v2"
	"time"

	"github.com/oncehttp/oncehttp"
)

// variant is the own part of the configuration of one life. Other lives, also those at the same time on another
// process, go on with its unfinished operations.
type variant struct {
	retry         oncehttp.Policy
	answers       int64         // Config.MaxResponseBytes
	enqueueMaxAge time.Duration // Config.EnqueueMaxAge
	lease         time.Duration // Config.Lease
	workers       int           // Config.ResumeWorkers
	keys          keySource     // Config.NewKey
	next          bool          // the profile is of the next version, with a shorter window
	keepsNote     bool          // Config.KeepHeader keeps a header with a name like a credential's
	company       company       // the local part

	secretHeaders, secretParameters []string
}

// keySource is the source of the key of a request without one.
type keySource uint8

const (
	keysAsPlanned  keySource = iota // see Setting.RandomKeys and Setting.FixedKeys
	keysAtRandom                    // Config.NewKey is not set
	keysOfBusiness                  // oncehttp.KeyFromJSON
)

// variant draws the configuration of one run of the program; another run may have another one.
func (s *Setting) variant(r *rand.Rand) variant {
	v := variant{retry: s.Retry, answers: s.KeepBytes, workers: s.Workers}
	if s.Changes.Times {
		v.retry.AttemptTimeout = pick(r, 3*time.Second, 15*time.Second, time.Minute)
		v.retry.AnswerTimeout = v.retry.AttemptTimeout + pick(r, 0, 10*time.Second, 2*time.Minute)
		v.retry.MaxElapsed = pick(r, 0, 10*time.Second, 5*time.Minute)
		v.retry.MaxAttempts = 1 + r.IntN(6)
		v.enqueueMaxAge = pick(r, 0, 20*time.Second, 3*time.Minute)
		v.lease = pick(r, 0, 5*time.Second, 2*time.Minute)
		v.workers = 1 + r.IntN(4)
		v.answers = pick[int64](r, 0, 200, 1000)
	}
	if s.Changes.Keys {
		v.keys = pick(r, keysAsPlanned, keysAtRandom, keysOfBusiness)
	}
	v.next = s.Changes.Profiles && r.IntN(2) == 0
	if s.Changes.Secrets {
		v.secretHeaders = pick(r, nil, []string{versionHeader})
		v.secretParameters = pick(r, nil, []string{parameter})
		v.keepsNote = r.IntN(2) == 0
	}
	if s.Claims > 0 { // claimed operations may be too old
		v.enqueueMaxAge = pick(r, 0, 5*time.Second, 20*time.Second, time.Minute)
	}
	return v
}

// Changes are the differences between the configurations of the lives of a run.
type Changes struct {
	Times    bool // timeouts, bounds and numbers of attempts
	Keys     bool // Config.NewKey
	Profiles bool // the profile's version, and its window
	Secrets  bool // SecretHeaders, SecretParameters and KeepHeader
	Builds   bool // some lives are of a later build; it freezes values unknown to the others
	Limits   bool // Limiter
	Pauses   bool // Retry.MaxDelay and Retry.MaxPause
	Bodies   bool // MaxRequestBytes
	Windows  bool // the window of the profile, under the same version
	Keeping  bool // the sweeper keeps nothing by its own Config
	// Accounts: from this life on Config.Account is named, and before it is not. Zero: it always is.
	Accounts int
}

// changes draws which parts of the configuration change between two runs of the program.
func (s *Setting) changes(r *rand.Rand) {
	s.Changes.Times = r.IntN(3) == 0
	s.Changes.Keys = r.IntN(3) == 0
	s.Changes.Profiles = r.IntN(3) == 0
	s.Changes.Secrets = s.Authorize && r.IntN(3) == 0                                  // Resume needs the omitted values
	if s.Processes == 1 && s.Accounts == 1 && s.Customers == apart && r.IntN(2) == 0 { // records with an account are not looked for without one
		s.Changes.Accounts = 2 + r.IntN(3)
	}
}
