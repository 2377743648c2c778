package store

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"math"

	"colophon/internal/access"
	"colophon/internal/content"
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
	err := s.engine.Transact(ctx, "", writes)
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

// ListTokens reads a project's list, or that of all projects.
func (s *Tokens) ListTokens(ctx context.Context, project string) ([]access.Token, error) {
	page, err := collect(ctx, s.engine, Query{Table: s.table, PK: Text(prefixTokenList + project)}, math.MaxInt32)
	if err != nil {
		return nil, contentFault("list tokens", err)
	}
	tokens := make([]access.Token, 0, len(page.Items))
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
	}
	return tokens, nil
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
