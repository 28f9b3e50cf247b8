package persisttest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// notifyCases returns the cases about persist.Notifier. why says what harm is done by a journal that fails the case.
func notifyCases() []testCase {
	return []testCase{
		{name: "notify/wakes", run: notifyWakes,
			why: "what another process has enqueued would wait until somebody happens to look"},
		{name: "notify/few", run: notifyFew,
			why: "a notification for each operation costs the server more than the operations"},
		{name: "notify/close", run: notifyClose,
			why: "a program that enqueues and ends is the one that nobody else wakes for"},
		{name: "notify/ends", run: notifyEnds,
			why: "a process that stops must not wait for what nobody will say"},
	}
}

// notifyEvery is the least time between two notifications of a journal.
const notifyEvery = 100 * time.Millisecond

// listening is one Listen under way.
type listening struct {
	k     *check
	wakes atomic.Int64
	woken chan struct{} // gets a value with a wake
	over  chan error
	stop  context.CancelFunc
}

// listen starts Listen in the background, and waits until it hears: Listen wakes its listener once at the beginning.
func (k *check) listen(n persist.Notifier) *listening {
	ctx, stop := context.WithCancel(context.Background())
	l := &listening{k: k, woken: make(chan struct{}, 1), over: make(chan error, 1), stop: stop}
	go func() {
		l.over <- n.Listen(ctx, func(err error) {
			if err != nil {
				k.errorf("Listen hears nothing: %v", err)
				return
			}
			l.wakes.Add(1)
			select {
			case l.woken <- struct{}{}:
			default:
			}
		})
	}()
	l.await("the beginning of Listen")
	return l
}

// await waits for the next wake of the listener (several at once may count as one). after names, for the error, the call that must cause it.
func (l *listening) await(after string) {
	select {
	case <-l.woken:
	case err := <-l.over:
		l.k.fatalf("Listen has ended: %v", err)
	case <-time.After(l.k.wait):
		l.k.fatalf("no wake within %v after %s", l.k.wait, after)
	}
}

// ended waits for the end of Listen, and returns its error. after names, for the failure, the cause of the end.
func (l *listening) ended(after string) error {
	select {
	case err := <-l.over:
		return err
	case <-time.After(l.k.wait):
		l.k.fatalf("Listen has not ended within %v after %s", l.k.wait, after)
	}
	return nil
}

// twoNotifiers opens the store twice, as two processes would. ok is false if the journal is no persist.Notifier; such journals pass. closeFirst
// closes the first journal; the check itself closes only the second.
func (k *check) twoNotifiers() (first, second persist.Journal, closeFirst func(), ok bool) {
	first = k.journal()
	if _, ok := persist.As[persist.Notifier](first); !ok {
		return nil, nil, func() {}, false
	}
	return first, k.journal(), func() { _ = first.Close() }, true
}

// notifierOf returns the journal as a Notifier; nil: it is none.
func notifierOf(j persist.Journal) persist.Notifier {
	n, _ := persist.As[persist.Notifier](j)
	return n
}

// notifyWakes checks that a notification wakes all listeners, and that the new record can be found then. Listeners are on another journal of the same store and
// on the one that notifies.
func notifyWakes(k *check) {
	one, two, end, ok := k.twoNotifiers()
	defer end()
	if !ok {
		return
	}
	all := []*listening{k.listen(notifierOf(two)), k.listen(notifierOf(two)), k.listen(notifierOf(one))}
	for i := range 3 {
		rec := k.begin(one, record("a", fmt.Sprint(i)))
		notifierOf(one).Notify()
		for _, l := range all {
			l.await("Notify")
		}
		if _, err := two.Get(context.Background(), rec.ID); err != nil {
			k.errorf("Get after a wake: %v", err)
		}
	}
	for _, l := range all {
		l.stop()
		k.want(l.ended("the end of its context"), context.Canceled, "Listen")
	}
	again := k.listen(notifierOf(two)) // when nobody has listened for a moment
	notifierOf(one).Notify()
	again.await("Notify")
	again.stop()
	_ = again.ended("the end of its context")
}

// notifyFew checks that many notifications become few, two in a time of notifyEvery at most (and two more), and that the last of them is not lost.
func notifyFew(k *check) {
	one, two, end, ok := k.twoNotifiers()
	defer end()
	if !ok {
		return
	}
	l := k.listen(notifierOf(two))
	before, start, calls := l.wakes.Load(), time.Now(), 0
	for ; time.Since(start) < 5*notifyEvery; calls++ {
		k.begin(one, record("a", fmt.Sprint(calls)))
		notifierOf(one).Notify()
		time.Sleep(notifyEvery / 50)
	}
	l.await("many Notify")
	took := time.Since(start)
	if got, most := l.wakes.Load()-before, int64(2+2*took/notifyEvery); got > most {
		k.errorf("%d calls of Notify within %v woke %d times, want %d at most", calls, took, got, most)
	}
	rec := k.begin(one, record("a", "last"))
	notifierOf(one).Notify()
	for found := false; !found; {
		l.await("the last Notify")
		_, err := two.Get(context.Background(), rec.ID)
		found = err == nil
	}
	l.stop()
	_ = l.ended("the end of its context")
}

// notifyClose checks that a notification before Close arrives, even if Close follows at once.
func notifyClose(k *check) {
	one, two, end, ok := k.twoNotifiers()
	defer end()
	if !ok {
		return
	}
	l := k.listen(notifierOf(two))
	notifierOf(one).Notify()
	l.await("the first Notify")
	notifierOf(one).Notify() // it has to wait, since the first was just now
	if err := one.Close(); err != nil {
		k.errorf("Close: %v", err)
	}
	l.await("a Notify before Close")
	l.stop()
	_ = l.ended("the end of its context")
}

// notifyEnds checks that Listen ends with its context, and with its journal's Close, while a listener on another journal of the store goes on.
func notifyEnds(k *check) {
	one, two, end, ok := k.twoNotifiers()
	defer end()
	if !ok {
		return
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	k.want(notifierOf(one).Listen(ended, func(error) {}), context.Canceled, "Listen with a context that has ended")
	l, other := k.listen(notifierOf(one)), k.listen(notifierOf(two))
	if err := one.Close(); err != nil {
		k.errorf("Close while somebody listens: %v", err)
	}
	if err := l.ended("Close"); !errors.Is(err, persist.ErrClosed) {
		k.errorf("Listen under way at Close: error %v, want ErrClosed", err)
	}
	notifierOf(two).Notify()
	other.await("Notify of the journal that is still open")
	other.stop()
	k.want(other.ended("the end of its context"), context.Canceled, "Listen")
}
