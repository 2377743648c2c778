package store

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math"
	"slices"
	"time"

	"colophon/internal/access"
	"colophon/internal/content"
	"colophon/internal/ratelimit"
)

// TokensConfig is what Tokens needs.
type TokensConfig struct {
	Engine Engine
	Table  string // the content table
}

func (c TokensConfig) validate() error {
	if c.Engine == nil || c.Table == "" {
		return errors.New("store: tokens need an engine and a table")
	}
	return nil
}

// Tokens keeps access tokens by their hashes.
type Tokens struct {
	engine Engine
	table  string
}

// NewTokens makes Tokens.
func NewTokens(c TokensConfig) (*Tokens, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	return &Tokens{engine: c.Engine, table: c.Table}, nil
}

var _ access.Tokens = (*Tokens)(nil)

// AddToken writes a token and its place in the list, if its project is there.
func (s *Tokens) AddToken(ctx context.Context, hash [sha256.Size]byte, t access.Token) error {
	writes := []Write{
		{Table: s.table, Key: tokenKey(hash[:]), Put: encodeToken(s.table, hash[:], t), If: Absent(At(attrPK))},
		{Table: s.table, Key: listedTokenKey(t.Project, t.ID), Put: encodeToken(s.table, hash[:], t), If: Absent(At(attrPK))},
	}
	if t.Project != "" {
		writes = append(writes, Write{Table: s.table, Key: metaKey(t.Project), Check: true, If: Exists(At(attrPK))})
	}
	// The id is random and stays the same where this is repeated: a first try that
	// was carried out unnoticed is not met as another's. DynamoDB keeps request
	// tokens for an account, not for a table, so that the table is part of it.
	request := sha256.Sum256([]byte(s.table + "\x00" + t.ID))
	err := s.engine.Transact(ctx, hex.EncodeToString(request[:16]), writes)
	if refused := AsRefused(err); refused != nil && len(refused.Reasons) == 3 && refused.Reasons[2].Code == CodeCondition {
		return content.ErrNoProject
	}
	return contentFault("add token", err)
}

// Token reads a token by its hash.
func (s *Tokens) Token(ctx context.Context, hash [sha256.Size]byte) (access.Token, error) {
	item, err := s.engine.Get(ctx, s.table, tokenKey(hash[:]))
	if err != nil {
		return access.Token{}, contentFault("read token", err)
	}
	if item == nil {
		return access.Token{}, content.ErrMissing
	}
	if ours, err := ofEpoch(item, s.table); err != nil || !ours {
		return access.Token{}, cmp.Or(err, content.ErrMissing)
	}
	return decodeToken(item)
}

// ListTokens reads a project's list, or that of all projects. When a token was
// last used is in its other item.
func (s *Tokens) ListTokens(ctx context.Context, project string) ([]access.Token, error) {
	page, err := collect(ctx, s.engine, Query{Table: s.table, PK: Text(prefixTokenList + project)}, math.MaxInt32)
	if err != nil {
		return nil, contentFault("list tokens", err)
	}
	tokens := make([]access.Token, 0, len(page.Items))
	keys := make([]Key, 0, len(page.Items))
	for _, item := range page.Items {
		ours, err := ofEpoch(item, s.table)
		if err != nil {
			return nil, err
		}
		if !ours {
			continue
		}
		t, err := decodeToken(item)
		if err != nil {
			return nil, err
		}
		tokens = append(tokens, t)
		keys = append(keys, tokenKey((&attributes{item: item}).optionalBytes(attrHash)))
	}
	used := map[string]access.Token{}
	for some := range slices.Chunk(keys, 100) {
		items, err := s.engine.BatchGet(ctx, s.table, some)
		if err != nil {
			return nil, contentFault("list tokens", err)
		}
		for _, item := range items {
			if t, err := decodeToken(item); err == nil {
				used[t.ID] = t
			}
		}
	}
	for i, t := range tokens {
		tokens[i].LastUsedAt = used[t.ID].LastUsedAt
	}
	return tokens, nil
}

// RecordUse records that a token was used, unless a use since before is recorded
// or it was revoked.
func (s *Tokens) RecordUse(ctx context.Context, hash [sha256.Size]byte, at, before time.Time) error {
	_, err := s.engine.Write(ctx, Write{
		Table: s.table, Key: tokenKey(hash[:]), Changes: []Change{Set(At(attrUsedAt), millis(at))},
		If: All(Exists(At(attrPK)), Any(Absent(At(attrUsedAt)), Less(At(attrUsedAt), Number(before.UnixMilli()+1)))),
	})
	if refused := AsRefused(err); refused != nil && refused.Has(CodeCondition) {
		return nil
	}
	return contentFault("record a use", err)
}

// TakeRequest takes one request from a token's shared limit: one write, or none
// where what was read shows that nothing is left.
func (s *Tokens) TakeRequest(ctx context.Context, hash [sha256.Size]byte, limited, now time.Time, limit ratelimit.Limit) (time.Duration, error) {
	nanos := func(t time.Time) Value { return Number(t.UnixNano()) }
	for range 3 { // a state that is not as read is read again by the refusal
		next, wait := limit.Take(limited, now)
		if wait > 0 {
			return wait, nil
		}
		write := Write{Table: s.table, Key: tokenKey(hash[:])}
		switch {
		case next.Before(limited): // the state was too far ahead to be right: corrected, by one caller
			write.Changes = []Change{Set(At(attrLimitedAt), nanos(next))}
			write.If = Equal(At(attrLimitedAt), nanos(limited))
		case limited.After(now): // others add to it too, so it only has to leave room
			full := now.Add(time.Duration(limit.Burst-1)*limit.Every + 1)
			write.Changes = []Change{Add(At(attrLimitedAt), int64(limit.Every))}
			write.If = All(AtLeast(At(attrLimitedAt), nanos(now)), Less(At(attrLimitedAt), nanos(full)))
		default:
			write.Changes = []Change{Set(At(attrLimitedAt), nanos(next))}
			write.If = All(Exists(At(attrPK)), Any(Absent(At(attrLimitedAt)), Less(At(attrLimitedAt), nanos(now.Add(1)))))
		}
		_, err := s.engine.Write(ctx, write)
		refused := AsRefused(err)
		if refused == nil || !refused.Has(CodeCondition) {
			return 0, contentFault("count a request", err)
		}
		item := refused.Reasons[0].Old
		if item == nil {
			return 0, nil // revoked since it was read: this request was before
		}
		t, err := decodeToken(item)
		if err != nil {
			return 0, err
		}
		limited = t.LimitedAt
	}
	return 0, nil // it began to be used at this very moment, by several at once
}

// RemoveToken ends a token and takes it out of its list, in this order: if the
// second write fails, the token has ended and is still listed, so revoking again
// completes it. No transaction, because each use of a busy token could make one fail.
func (s *Tokens) RemoveToken(ctx context.Context, project, id string) error {
	listed := listedTokenKey(project, id)
	item, err := s.engine.Get(ctx, s.table, listed)
	if err != nil {
		return contentFault("read token", err)
	}
	if item == nil {
		return content.ErrMissing
	}
	a := &attributes{item: item}
	hash := a.optionalBytes(attrHash)
	if err := a.faultIn("token"); err != nil {
		return err
	}
	for _, key := range []Key{tokenKey(hash), listed} {
		if _, err := s.engine.Write(ctx, Write{Table: s.table, Key: key, Delete: true}); err != nil {
			return contentFault("remove token", err)
		}
	}
	return nil
}
