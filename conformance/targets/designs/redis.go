package main

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/redis/go-redis/v9"
)

// redisStore is Redis with a prefix of this process before every key.
type redisStore struct {
	*redis.Client
	prefix string
}

// redis opens Redis for this process. e.end removes its keys.
func (e *env) redis() (*redisStore, error) {
	s := &redisStore{Client: redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379"}), prefix: e.name + ":"}
	e.closers = append(e.closers, s.clean)
	return s, s.Ping(context.Background()).Err()
}

// clean deletes all keys that this process has made in Redis and closes the client.
func (s *redisStore) clean() error {
	ctx := context.Background()
	for keys := s.Scan(ctx, 0, s.prefix+"*", 1000).Iterator(); keys.Next(ctx); {
		if err := s.Del(ctx, keys.Val()).Err(); err != nil {
			return err
		}
	}
	return s.Close()
}

// kept is the value of a key during and after the work.
type kept struct {
	Owner  string  `json:"owner"`            // a token of the call at work; "": it has ended
	Hash   string  `json:"hash"`             // of the request
	Answer *answer `json:"answer,omitempty"` // nil: the call is at work
}

// once is the repair of the designs over Redis: it executes a call once for each key, and returns its answer. SET NX takes the key for lease, with a
// token of this call; the answer replaces the record before it is sent, and stays for keep. Only the owner removes the record, after a crash, a 429
// or a 5xx.
func (s *redisStore) once(c *call, key string, lease, keep time.Duration) answer {
	ctx := c.Context()
	mine := kept{Owner: randomText(), Hash: c.hash()}
	mineNow, err := s.SetNX(ctx, key, text(mine), lease).Result()
	if err != nil {
		return problem(http.StatusServiceUnavailable, "the store of keys is out of reach")
	}
	if !mineNow {
		return s.existing(c, key, mine.Hash)
	}
	settled := false
	defer func() {
		if !settled { // it crashed, or failed: a repeat may run
			s.Eval(ctx, removeOwn, []string{key}, text(mine))
		}
	}()
	a := c.work()
	if a.Status == http.StatusTooManyRequests || a.Status >= 500 {
		return a
	}
	settled = s.Set(ctx, key, text(kept{Hash: mine.Hash, Answer: &a}), keep).Err() == nil
	return a
}

// removeOwn deletes a key if it has the given value.
const removeOwn = `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0`

// existing returns the answer to a request whose key is taken: the stored one, a refusal if it is another request, or 409 (come again later) while
// the first is at work.
func (s *redisStore) existing(c *call, key, hash string) answer {
	var found kept
	record, err := s.Get(c.Context(), key).Bytes()
	switch {
	case err == redis.Nil:
		return wait() // it was released in between
	case err != nil || json.Unmarshal(record, &found) != nil:
		return problem(http.StatusServiceUnavailable, "the store of keys is out of reach")
	case found.Hash != hash:
		return problem(http.StatusUnprocessableEntity, "the key belongs to another request")
	case found.Answer == nil:
		return wait()
	}
	return replay(*found.Answer)
}

// text returns a record as JSON.
func text(record kept) string {
	form, _ := json.Marshal(record) // plain data
	return string(form)
}
