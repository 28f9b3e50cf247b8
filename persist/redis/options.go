package redis

import (
	"errors"
	"fmt"
	"regexp"
	"time"
)

// The defaults of Options.
const (
	defaultPrefix      = "oncehttp"
	defaultBuckets     = 16
	defaultMaxConns    = 16
	defaultCallTimeout = 9 * time.Second
)

// maxBuckets is the number of buckets with a place in a Seq beside the number.
const maxBuckets = 1 << bucketBits

// KeepForever, as Options.KeepKey, keeps the tombstones of chosen keys for ever, like the other journals. Each takes
// about 1.1 KB of the server's memory.
const KeepForever time.Duration = 1<<63 - 1

var (
	// ErrVolatile: the server may lose or evict acknowledged data, or does not tell. The error names the setting.
	ErrVolatile = errors.New("persist/redis: the server may lose what it has acknowledged")
	// ErrLayout: the journal was made with other options, or by another version of this package. The error contains the
	// remedy.
	ErrLayout = errors.New("persist/redis: the journal is laid out otherwise")
	// ErrOptions: an option or the URL cannot be used. The error names it.
	ErrOptions = errors.New("persist/redis: wrong options")
)

// Options contain the place of the journal and its bounds. Only KeepKey has to be set.
type Options struct {
	_ struct{}

	// KeepKey is how long the journal remembers a used key after the end of its operation, if a caller chose the key.
	// Begin writes it into a record without a KeepKey, or the record's Window if this is longer. After that time the
	// same key is a new operation. KeepKey has to be set; [KeepForever] is a choice.
	KeepKey time.Duration
	// Prefix begins the names of the journal's keys: letters, digits, '.', '_', '-' and ':',
	// at most 60. Empty is "oncehttp".
	Prefix string
	// Buckets is the number of the journal's parts, at most 256. A cluster can place them on as many nodes. It never
	// changes in the life of a journal. Zero is the existing number, and 16 for a new journal.
	Buckets int
	// MaxConns bounds the connections of this journal to each node. Zero is 16.
	MaxConns int
	// CallTimeout bounds each call of a method, with its wait for a connection and all repetitions of a write in doubt.
	// A third of it bounds one try, and the making of a connection. Zero is 9 seconds.
	CallTimeout time.Duration
	// AllowVolatile accepts a server even if it may lose or evict acknowledged data. Otherwise each connection asks for
	// appendonly yes, appendfsync always, no-appendfsync-on-rewrite no and maxmemory-policy noeviction. A server
	// without readable settings is refused, too.
	AllowVolatile bool
	// ReadOnly opens the journal to look at it, for a user with the rights +@read +@connection +info to the journal's keys
	// alone. Get, List, Flush, Secret and the reading of a Fact work; Now needs +time, too; anything else is
	// persist.ErrReadOnly. The durability of the server does not matter then.
	ReadOnly bool

	most *most // see greet; set by open
}

// prefixes describes a valid prefix, so the hash tag of a key is always the intended one.
var prefixes = regexp.MustCompile(`^[A-Za-z0-9._:-]{1,60}$`)

// checked returns the options with the defaults filled in. Only Buckets may stay 0: an existing journal has its own number.
// Error: ErrOptions for an invalid one.
func (o Options) checked() (Options, error) {
	if o.Prefix == "" {
		o.Prefix = defaultPrefix
	}
	if o.MaxConns == 0 {
		o.MaxConns = defaultMaxConns
	}
	if o.CallTimeout == 0 {
		o.CallTimeout = defaultCallTimeout
	}
	switch {
	case o.KeepKey <= 0:
		return o, fmt.Errorf("%w: KeepKey %v: say for how long used keys are remembered, since Redis holds them in memory; KeepForever is a choice", ErrOptions, o.KeepKey)
	case !prefixes.MatchString(o.Prefix):
		return o, fmt.Errorf("%w: Prefix %q: want letters, digits, '.', '_', '-' and ':', at most 60", ErrOptions, o.Prefix)
	case o.Buckets < 0 || o.Buckets > maxBuckets:
		return o, fmt.Errorf("%w: Buckets %d: want at most %d", ErrOptions, o.Buckets, maxBuckets)
	case o.MaxConns < 1:
		return o, fmt.Errorf("%w: MaxConns %d: want at least 1", ErrOptions, o.MaxConns)
	case o.CallTimeout < 3*time.Millisecond: // it is divided among three tries
		return o, fmt.Errorf("%w: CallTimeout %v: want at least 3ms", ErrOptions, o.CallTimeout)
	}
	return o, nil
}
