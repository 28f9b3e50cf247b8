package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/oncehttp/oncehttp/persist"
)

// triesInLimit is the number of full tries in the limit of a call. The first may hang in a network with dropped
// packets, and the next has to settle it.
const triesInLimit = 3

// The pauses between two tries.
const (
	pauseFirst = 2 * time.Millisecond
	pauseLast  = 250 * time.Millisecond
)

// The tries while the server refuses credentials of a provider, and the pauses between them. A password may be rotated between its reading and its
// use.
const (
	credentialTries = 5
	credentialPause = 50 * time.Millisecond
)

// effect tells the possible effect of a failed call.
type effect int

// The kinds of errors. The zero value is the cautious one.
const (
	inDoubt effect = iota // it may have taken effect, or may still take effect
	broken                // the script ended in its middle: it may have done a part, and would again
	again                 // the server has done nothing, and may do it soon
	none                  // nothing was sent, or the server has done nothing and tells the reason
)

// effectOf tells by the error of a call what effect its write may have had. none: certainly none, such as a call without a connection. again: none, and
// another try may succeed. broken: the script ended in its middle, perhaps after a part of its writes. inDoubt: that is not known.
func effectOf(err error) effect {
	var answered goredis.Error
	var network *net.OpError
	switch {
	case errors.Is(err, ErrVolatile), errors.Is(err, errGreeting):
		return none
	case errors.As(err, &answered):
		return answeredWith(answered)
	case errors.As(err, &network) && network.Op == "dial":
		return none
	case errors.Is(err, context.Canceled), errors.Is(err, goredis.ErrPoolTimeout), errors.Is(err, goredis.ErrClosed):
		return none // without a connection; one that has begun to write does not look at the context
	}
	return inDoubt
}

// answeredWith returns the effect of a write that the server answered with err. A script meets the errors listed in refused before its first write, so these
// mean that nothing was written. again, for those listed in passing: the server may do it soon. broken: a script has failed, perhaps after a part of its
// writes. Any other error is about a command that was not a script, and has changed nothing.
func answeredWith(err goredis.Error) effect {
	inScript := strings.Contains(err.Error(), "script")
	switch {
	case isRefusal(err, refused):
		return none
	case isRefusal(err, passing):
		return again
	case inScript:
		return broken
	}
	return none
}

// isRotation reports whether the server has refused the name or the password of a new connection. The password may have been changed between its reading and
// its use.
func isRotation(err error) bool {
	var answered goredis.Error
	return errors.As(err, &answered) && code(answered) == "WRONGPASS"
}

// unreached reports whether the call had no connection to the server.
func unreached(err error) bool {
	var network *net.OpError
	return errors.Is(err, errGreeting) || errors.Is(err, goredis.ErrPoolTimeout) || errors.As(err, &network) && network.Op == "dial"
}

// settle makes a write until Redis has told its result, or the limit of the call is over. If the answer to a write is
// lost, settle makes the write again. The write must take effect once, however often it is made, and must find its own
// earlier effect. ctx counts until the write is handed over.
//
// Errors: those of write itself, which has then changed nothing; persist.ErrUncertain if the limit ended while a write
// was in doubt; the context's.
func (j *Journal) settle(ctx context.Context, write func(ctx context.Context, repeated bool) error) error {
	return j.settled(j.write(ctx, false, write))
}

// settleLate does the work of settle for a write that no caller waits for, and that is lost if it gives up. Without a connection it tries again,
// until the limit of the call is over or ctx ends.
func (j *Journal) settleLate(ctx context.Context, write func(ctx context.Context, repeated bool) error) error {
	return j.settled(j.write(ctx, true, write))
}

// settled returns the error of settle for the results of write, with the name of the journal. If the write may or may not have taken effect (doubtful), it
// matches persist.ErrUncertain, too. A nil err stays nil.
func (j *Journal) settled(doubtful bool, err error) error {
	if doubtful {
		return j.failed(fmt.Errorf("%w: %w", persist.ErrUncertain, err))
	}
	return j.failed(err)
}

// attempt does the work of settle for a write that does no harm, done or not, such as a step of a sweep. Its error is never persist.ErrUncertain,
// since that ends a client's Run.
func (j *Journal) attempt(ctx context.Context, write func(ctx context.Context) error) error {
	_, err := j.write(ctx, false, func(ctx context.Context, _ bool) error { return write(ctx) })
	return j.failed(err)
}

// write makes a write, and makes it again until Redis tells its result or the time limit of a call is over, whatever ctx does once it has begun. doubtful
// means that nobody knows if a try took effect. patient: it goes on without a connection. Error: also persist.ErrReadOnly for a journal opened for reading.
func (j *Journal) write(ctx context.Context, patient bool, write func(ctx context.Context, repeated bool) error) (doubtful bool, err error) {
	if j.looks {
		return false, cmp.Or(ctx.Err(), persist.ErrReadOnly)
	}
	return j.repeat(ctx, context.WithoutCancel(ctx), patient, write)
}

// read makes a read, and makes it again if the connection fails. It ends with ctx, or at the time limit of a call. Once ctx has ended the error is that of
// ctx, but for an answer of Redis that is final (isOwn).
func (j *Journal) read(ctx context.Context, query func(ctx context.Context) error) error {
	_, err := j.repeat(ctx, ctx, false, func(ctx context.Context, _ bool) error { return query(ctx) })
	if ctx.Err() != nil && err != nil && !isOwn(err) {
		return ctx.Err()
	}
	return j.failed(err)
}

// repeat makes a write or a read, and makes it again until Redis tells its result or the time limit of a call is over. Each pause between tries is longer than
// the one before. repeated tells it that an earlier try may have taken effect. base bounds the tries under way. patient: it goes on if there is no connection.
// If the program provides the credentials (j.provided) and the server refuses them, they may have been changed just now: it tries a few times more. doubtful:
// it ended, and nobody knows if a try took effect.
func (j *Journal) repeat(ctx, base context.Context, patient bool, write func(ctx context.Context, repeated bool) error) (doubtful bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	if !j.enter() {
		return false, persist.ErrClosed
	}
	defer j.running.Done()
	limited, cancel := context.WithTimeout(base, j.limit)
	defer cancel()
	var doubt error // of an earlier try
	refused := 0
	for pause := pauseFirst; ; pause = min(2*pause, pauseLast) {
		effect, err := j.try(ctx, limited, doubt != nil, write)
		switch {
		case err == nil:
			return false, nil
		case isOwn(err):
			return false, err
		case effect == inDoubt:
			doubt = err
		case effect == broken:
			return true, err
		case j.provided && isRotation(err) && refused < credentialTries-1:
			refused++
			pause = time.Duration(refused) * credentialPause
		case effect == none && doubt == nil && !(patient && unreached(err)):
			return false, err
		}
		// In doubt, or a next try may succeed.
		j.reload(limited)
		select {
		case <-limited.Done():
			return doubt != nil, fmt.Errorf("no answer within %v: %w", j.limit, cmp.Or(doubt, err))
		case <-time.After(pause):
		}
	}
}

// try makes the write once, in a part of the limit of a call, and tells the effect that it may have had, beside its error. repeated: an earlier try may have
// taken effect. If the caller leaves (ctx ends) before there is a connection, nothing is left of the write, unless an earlier try is in doubt: then the end of
// ctx is ignored, so that the doubt can be settled.
func (j *Journal) try(ctx, limited context.Context, repeated bool, write func(context.Context, bool) error) (effect, error) {
	short, cancel := context.WithTimeout(limited, j.limit/triesInLimit)
	defer cancel()
	if !repeated {
		defer context.AfterFunc(ctx, cancel)()
	}
	err := write(short, repeated)
	if !repeated && isTooLarge(err) { // the setting was lowered since it was read; nothing was written
		err = fmt.Errorf("%w: %w", persist.ErrTooLarge, err)
	}
	effect := effectOf(err)
	if !repeated && ctx.Err() != nil && effect == none {
		return none, ctx.Err()
	}
	return effect, err
}

// reload makes the client of a cluster learn soon which node has which keys. It is called after a failed call: keys may have moved to another node.
func (j *Journal) reload(ctx context.Context) {
	if cluster, ok := j.client.(*goredis.ClusterClient); ok {
		cluster.ReloadState(ctx)
	}
}

// isOwn reports whether an error is one of package persist about an answer of Redis, such as persist.ErrStale, and not the failure of a call. Such an error is
// final: to repeat the call cannot help.
func isOwn(err error) bool {
	for _, own := range []error{persist.ErrNotFound, persist.ErrStale, persist.ErrExists, persist.ErrInvalid, persist.ErrCorrupt, persist.ErrNewer, persist.ErrGone} {
		if errors.Is(err, own) {
			return true
		}
	}
	return false
}

// failed adds the name of the journal to an error. nil stays nil. The client's errors hold no password.
func (j *Journal) failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("journal %s: %w", j.name, err)
}
