package redis

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/landing"
	"github.com/oncehttp/oncehttp/persist/internal/notify"
)

// format is the version of this package's layout. Open refuses any other. Programs from before the first release wrote
// the older ones.
const (
	format       = "v5"
	fourthFormat = "v4"
	thirdFormat  = "v3"
	secondFormat = "v2"
	firstFormat  = "v1"
	olderFormat  = "1"
)

var (
	_ persist.Journal       = (*Journal)(nil)
	_ persist.Claimer       = (*Journal)(nil)
	_ persist.LateFinisher  = (*Journal)(nil)
	_ persist.DueTimes      = (*Journal)(nil)
	_ persist.SharedResults = (*Journal)(nil)
	_ persist.Counter       = (*Journal)(nil)
)

// Journal is a journal on Redis. It implements [persist.Journal], [persist.Claimer],
// [persist.LateFinisher], [persist.DueTimes], [persist.SharedResults] and [persist.Notifier]. Make one with Open.
//
// A Journal not returned by Open is closed: the methods of a zero one return [persist.ErrClosed], those of a nil one
// panic.
type Journal struct {
	persist.Attachment

	client   goredis.UniversalClient
	scripts  scripts
	buckets  []*bucket
	wakes    *notify.Hub
	name     string
	id       string // the journal's name in its buckets, see named.go
	secret   []byte
	place    string        // the key of the hash with its layout
	limit    time.Duration // of one call
	most     *most         // the bound of each part
	looks    bool          // it was opened for reading
	provided bool          // a provider of the program sets the credentials of each connection
	keepKey  time.Duration // 0: for ever
	seen     atomic.Uint64 // the highest number met by this process, of any bucket
	landing  landing.Begins
	groups   sync.Map // by the first bytes of places in origins: groupNames

	mu      sync.Mutex
	shut    bool
	running sync.WaitGroup // calls under way; entered under mu, and not once it is shut
}

// Open opens the journal at a URL such as redis://user:password@host:6379/0, or rediss:// with TLS. A server of a
// cluster is noticed. Further nodes, asked if the first is down, follow as ?addr=host:port&addr=…. Open makes the
// journal if there is none. ctx bounds the opening alone. The opening also ends
// after Options.CallTimeout.
//
// Errors: ErrOptions, ErrLayout, ErrVolatile, persist.ErrGone if a part of it was emptied, those of the server, the
// context's.
func Open(ctx context.Context, url string, opts Options) (*Journal, error) {
	return opts.open(ctx, url, loadScripts())
}

// open opens the journal at a URL with these scripts. Tests replace the scripts.
func (o Options) open(ctx context.Context, url string, with scripts) (*Journal, error) {
	opts, err := o.checked()
	if err != nil {
		return nil, err
	}
	opts.most = &most{}
	at, err := opts.parse(url)
	if err != nil {
		return nil, err
	}
	return opts.openAt(ctx, at, with)
}

// openAt opens the journal at an address: it connects, and reads or creates the layout. The journal has with as its scripts. j.looks says that it is opened
// for reading only, j.provided that the program provides credentials by a function.
func (o Options) openAt(ctx context.Context, at address, with scripts) (*Journal, error) {
	opts := o
	var err error
	j := &Journal{scripts: with, name: at.name(opts.Prefix), limit: opts.CallTimeout, most: opts.most, keepKey: opts.KeepKey, looks: opts.ReadOnly, provided: at.provided()}
	if j.keepKey == KeepForever {
		j.keepKey = 0
	}
	ctx, cancel := context.WithTimeout(ctx, opts.CallTimeout)
	defer cancel()
	if j.client, err = at.client(ctx); err != nil {
		return nil, j.failed(err)
	}
	if err := j.lay(ctx, opts); err != nil {
		_ = j.client.Close()
		return nil, j.failed(err)
	}
	j.wakes = j.notifier(opts.Prefix, at.options.DB)
	return j, nil
}

// lay reads the layout of the journal (its format, number of buckets, id, the mark "named" once all buckets have its name, and secret), or creates it, and
// fills in j. It asks every node, so that an unreachable one is found when the journal is opened. j.looks says that it is opened for reading: then nothing is
// written.
func (j *Journal) lay(ctx context.Context, opts Options) error {
	buckets := opts.Buckets
	if buckets == 0 {
		buckets = defaultBuckets
	}
	secret := make([]byte, persist.SecretSize)
	_, _ = rand.Read(secret) // never fails
	place := "{" + opts.Prefix + "}:journal"
	answer, err := j.noted(ctx, place, opts.Prefix, buckets, secret)
	if err != nil {
		return err
	}
	noted := make([]string, 5)
	for i := range min(len(noted), len(answer)) {
		noted[i], _ = answer[i].(string) // named is nil in a new journal
	}
	switch noted[0] {
	case format:
	case olderFormat, firstFormat, secondFormat, thirdFormat, fourthFormat:
		return fmt.Errorf("%w: key %s: a program from before the first release made it; finish its operations with that program, and use another prefix", ErrLayout, place)
	default:
		return fmt.Errorf("%w: key %s: it has format %q, and this program reads %q; use a newer program", ErrLayout, place, noted[0], format)
	}
	n, err := strconv.Atoi(noted[1])
	if err != nil || n < 1 || n > maxBuckets {
		return fmt.Errorf("%w: it says that it has %q buckets", ErrLayout, noted[1])
	}
	if opts.Buckets != 0 && opts.Buckets != n {
		return fmt.Errorf("%w: it has %d buckets, which cannot change, and Options.Buckets is %d", ErrLayout, n, opts.Buckets)
	}
	for i := range n {
		j.buckets = append(j.buckets, newBucket(opts.Prefix, i))
	}
	if len(noted[4]) != persist.SecretSize {
		return fmt.Errorf("%w: key %s: it has a secret of %d bytes", persist.ErrCorrupt, place, len(noted[4]))
	}
	j.id, j.secret, j.place = noted[2], []byte(noted[4]), place
	// Some bucket may lack the name: an Open was cut off, or this is the first.
	if noted[3] == "" && !j.looks {
		err = j.giveNames(ctx, place)
	}
	if err == nil {
		_, err = j.lastNumber(ctx) // it asks every node
	}
	return err
}

// noted reads the layout of the journal under the key place: format, number of buckets, id, a mark that all buckets have its name, and secret. If there is
// none, it writes it with these values and a random id; a journal opened for reading (looks) returns an error instead.
func (j *Journal) noted(ctx context.Context, place, prefix string, buckets int, secret []byte) ([]any, error) {
	if !j.looks {
		return j.scripts.open.Run(ctx, j.client, []string{place}, format, buckets, rand.Text(), secret).Slice()
	}
	answer, err := j.client.HMGet(ctx, place, "format", "buckets", "id", "named", "secret").Result()
	if err == nil && len(answer) > 0 && answer[0] == nil {
		err = missingError{place, prefix}
	}
	return answer, err
}

// missingError is the error about a journal that nobody has made yet.
type missingError struct{ place, prefix string }

// Error names the prefix and the key at which a journal was looked for.
func (e missingError) Error() string {
	return fmt.Sprintf("persist/redis: there is no journal yet under the prefix %q (key %s)", e.prefix, e.place)
}

// Unwrap returns ErrLayout: a missing journal has no layout.
func (e missingError) Unwrap() error { return ErrLayout }

// NoJournal returns the prefix under which there is no journal. A program recognises this error by the method, and can say the prefix to its user.
func (e missingError) NoJournal() string { return e.prefix }

// opened returns an error for a zero Journal, which Open has not made.
func (j *Journal) opened() error {
	if j.client == nil {
		return j.failed(persist.ErrClosed)
	}
	return nil
}

// enter counts a call that begins to use Redis, so that Close waits for it. It returns false if the journal is closed or was never opened. After true
// the caller must call running.Done.
func (j *Journal) enter() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	open := j.client != nil && !j.shut
	if open {
		j.running.Add(1)
	}
	return open
}

// Close implements [persist.Journal]: it refuses new calls, waits for those under way, and closes the connections. A second call waits, too, and returns nil.
func (j *Journal) Close() error {
	if j.client == nil { // it was never opened
		return nil
	}
	j.wakes.Close() // no notification is sent or heard any more
	j.mu.Lock()
	was := j.shut
	j.shut = true
	j.mu.Unlock()
	j.running.Wait()
	if was {
		return nil
	}
	return j.failed(j.client.Close())
}

// Flush implements [persist.Journal]. Every method returns after its write is durable, so there is nothing to wait for: it only checks that the
// journal is open.
func (j *Journal) Flush(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !j.enter() {
		return j.failed(persist.ErrClosed)
	}
	j.running.Done()
	return nil
}

// Secret implements [persist.Journal]: it returns a copy of the secret that was read when the journal was opened.
func (j *Journal) Secret(ctx context.Context) ([]byte, error) {
	return slices.Clone(j.secret), j.Flush(ctx) // an error if it is closed
}

// Get implements [persist.Journal]: it returns the record of this ID, or persist.ErrNotFound. With the record it reads the name of the bucket: if that is
// missing, Redis was emptied, and a missing record proves nothing; the error is persist.ErrGone then.
func (j *Journal) Get(ctx context.Context, id persist.ID) (rec persist.Record, err error) {
	name := idOf(id)
	b := j.of(name)
	err = j.read(ctx, func(ctx context.Context) error {
		values, err := j.client.HMGet(ctx, b.keys[records], append(fields(name, everyPart), nameField)...).Result()
		if err == nil {
			err = j.mustBe(b, values[len(everyPart)])
		}
		if err != nil {
			return err
		}
		e := entryOf(name, values[:len(everyPart)])
		if e == nil {
			return notFound(id)
		}
		rec, err = e.record(b)
		return err
	})
	if err == nil {
		err = j.checkID(&rec, id)
	}
	if err != nil {
		return persist.Record{}, err
	}
	return rec, nil
}

// notFound returns the error for an ID without a record.
func notFound(id persist.ID) error {
	return fmt.Errorf("%w: account %q, key %q", persist.ErrNotFound, id.Account, id.Key)
}
