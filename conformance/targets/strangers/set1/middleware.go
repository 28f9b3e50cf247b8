package set1

import (
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// slots admits as many requests at a time as the channel has room.
type slots chan struct{}

// take takes a slot, the right to work at one of a bounded number of requests, without waiting; false if none is free. free gives it back.
func (s slots) take() bool {
	select {
	case s <- struct{}{}:
		return true
	default:
		return false
	}
}

// free gives a slot back: a slot is the right to work at one of a bounded number of requests.
func (s slots) free() { <-s }

// tooMany answers 429.
func tooMany(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "1")
	refuse(w, http.StatusTooManyRequests, "too many requests are at work")
}

// limited answers 429 to requests, but not to GET, while n others are at work.
func limited(n int, next http.Handler) http.Handler {
	at := make(slots, n)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			if !at.take() {
				tooMany(w)
				return
			}
			defer at.free()
		}
		next.ServeHTTP(w, r)
	})
}

// shy answers 503 to each nth request with a key, before any work. A client may then send it again.
func shy(n int64, next http.Handler) http.Handler {
	var count atomic.Int64
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if keyed(r) && count.Add(1)%n == 0 {
			refuse(w, http.StatusServiceUnavailable, "come again")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// upTo answers 413 to bodies of more than n bytes.
func upTo(n int, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			body, ok := slurp(w, r)
			if !ok {
				return
			}
			if len(body) > n {
				refuse(w, http.StatusRequestEntityTooLarge, "over "+strconv.Itoa(n)+" bytes")
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// deadline answers 503 if next has not answered after d. The work goes on, and may still have its effect.
func deadline(d time.Duration, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answers := make(chan *reply, 1)
		go func() { answers <- capture(next, r) }()
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case p := <-answers:
			give(w, p)
		case <-timer.C:
			refuse(w, http.StatusServiceUnavailable, "it takes too long")
		}
	})
}

// recovered answers 500 after a panic.
func recovered(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if recover() != nil {
				refuse(w, http.StatusInternalServerError, "crashed")
			}
		}()
		next.ServeHTTP(w, r)
	})
}

// flight is a request at work. reply is set before done is closed.
type flight struct {
	done  chan struct{}
	reply *reply
}

// flights lets equal requests that come during the work share its answer, if that is a
// success.
type flights struct {
	next http.Handler
	name func(r *http.Request, body []byte) string // equal for equal requests
	mu   sync.Mutex                                // guards now
	now  map[string]*flight                        // requests at work, by name
}

// ServeHTTP executes the first of equal requests. Those that come meanwhile get its answer if
// it is a success, and go on to next otherwise.
func (f *flights) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !keyed(r) {
		f.next.ServeHTTP(w, r)
		return
	}
	body, ok := slurp(w, r)
	if !ok {
		return
	}
	name := f.name(r, body)
	f.mu.Lock()
	if other := f.now[name]; other != nil {
		f.mu.Unlock()
		<-other.done
		if other.reply.good() {
			give(w, other.reply)
		} else {
			f.next.ServeHTTP(w, r)
		}
		return
	}
	mine := &flight{done: make(chan struct{})}
	f.now[name] = mine
	f.mu.Unlock()
	mine.reply = capture(f.next, r)
	f.mu.Lock()
	delete(f.now, name)
	f.mu.Unlock()
	close(mine.done)
	give(w, mine.reply)
}
