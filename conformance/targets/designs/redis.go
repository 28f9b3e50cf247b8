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

func (e *env) redis() (*redisStore, error) {
	s := &redisStore{Client: redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379"}), prefix: e.name + ":"}
	e.closers = append(e.closers, s.clean)
	return s, s.Ping(context.Background()).Err()
}

func (s *redisStore) clean() error {
	ctx := context.Background()
	for keys := s.Scan(ctx, 0, s.prefix+"*", 1000).Iterator(); keys.Next(ctx); {
		if err := s.Del(ctx, keys.Val()).Err(); err != nil {
			return err
		}
	}
	return s.Close()
}

// kept is what stands under a key while it is held, and afterwards.
type kept struct {
	Owner  string  `json:"owner"` // who is at work; "" when it is done
	Hash   string  `json:"hash"`
	Answer *answer `json:"answer,omitempty"`
}

// once is the repair that the designs over Redis share. The key is taken in one
// atomic step (SET NX) with a token of its own; the record holds what was asked,
// and is replaced by the answer before that is sent; only its owner removes it,
// and only where nothing was done: after a crash, a 429 or a 5xx.
func (s *redisStore) once(c *call, key string, lease, keep time.Duration) answer {
	ctx := c.Context()
	mine := kept{Owner: randomText(), Hash: c.hash()}
	took, err := s.SetNX(ctx, key, text(mine), lease).Result()
	if err != nil {
		return problem(http.StatusServiceUnavailable, "the store of keys is out of reach")
	}
	if !took {
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

// removeOwn deletes a key only where it holds what this caller put there.
const removeOwn = `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0`

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

func text(record kept) string {
	form, _ := json.Marshal(record) // plain data
	return string(form)
}
