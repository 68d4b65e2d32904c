//! The keys of a store: a file with one or more secrets, of which the last one seals and all open.
//!
//! ```text
//! # comments
//! k1a2b3c4d 64 hex digits
//! ```
//!
//! An id is made from its secret, so that a mistyped secret is a clear error and no two keys have the same id. From
//! each secret three keys are derived: one seals details, one hashes inputs, one makes the chain. Secrets are wiped
//! from memory and are in no `Debug` text. The caller says where the file is; nothing here reads the environment.

use crate::error::StoreError;
use crate::files;
use crate::row::{Dedup, Hash, Sealed, from_hex, hex};
use ring::{aead, digest, hkdf, hmac, rand, rand::SecureRandom};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use zeroize::{Zeroize, Zeroizing};

const HEADER: &str = "# Keys of Hookgate's audit trail: id and secret. The last one seals, all open what they sealed.\n\
                      # Whoever reads this file can read the sealed parts; without it they are lost.\n";

/// The keys of a key file. Clones share them.
#[derive(Clone)]
pub struct Keys {
    path: PathBuf,
    all: Arc<[Key]>,
}

struct Key {
    id: Arc<str>,
    sealing: aead::LessSafeKey,
    hashing: hmac::Key,
    chain: hmac::Key,
}

/// What is sealed; a text sealed as one does not open as the other.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Purpose {
    Detail,
    Job,
    Trace,
}

/// How a chain's hashes are made.
#[derive(Clone)]
pub struct ChainKey(Option<(Arc<str>, hmac::Key)>);

impl Keys {
    /// Reads a key file.
    pub fn load(path: &Path) -> Result<Keys, StoreError> {
        let text = Zeroizing::new(std::fs::read_to_string(path).map_err(StoreError::file(path))?);
        let mut all = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            all.push(read_line(line).map_err(|why| StoreError::KeyFile {
                path: path.to_owned(),
                why: format!("line {number}: {why}"),
            })?);
        }
        if all.is_empty() {
            return Err(StoreError::KeyFile { path: path.to_owned(), why: "it holds no key".into() });
        }
        Ok(Keys { path: path.to_owned(), all: all.into() })
    }

    /// Reads a key file, or makes one that only its owner may read. The flag says that it was made: tell the user
    /// where. Several processes may do this at once; all get the same key.
    pub fn load_or_make(path: &Path) -> Result<(Keys, bool), StoreError> {
        match std::fs::symlink_metadata(path) {
            Ok(_) => return Ok((Keys::load(path)?, false)),
            Err(why) if why.kind() == std::io::ErrorKind::NotFound => {}
            Err(why) => return Err(StoreError::file(path)(why)),
        }
        if let Some(folder) = path.parent() {
            files::make_folder(folder)?;
        }
        let text = Zeroizing::new(format!("{HEADER}{}\n", *new_line()?));
        let made = files::write_new(path, text.as_bytes())?;
        Ok((Keys::load(path)?, made))
    }

    /// Adds a new key to the file; from then on it seals. Old keys stay: they check and open what they made.
    pub fn add(path: &Path) -> Result<Keys, StoreError> {
        let held = std::fs::File::open(path).map_err(StoreError::file(path))?;
        // another process that adds a key waits here, then reads what this one wrote
        held.lock().map_err(StoreError::file(path))?;
        Keys::load(path)?;
        let old = Zeroizing::new(std::fs::read_to_string(path).map_err(StoreError::file(path))?);
        let text = Zeroizing::new(format!("{}\n{}\n", old.trim_end(), *new_line()?));
        files::replace(path, text.as_bytes())?;
        Keys::load(path)
    }

    /// Where they were read from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The id of the key that seals.
    pub fn newest(&self) -> &str {
        self.all.last().map_or("", |key| &key.id)
    }

    /// The ids of all keys, oldest first.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.all.iter().map(|key| &*key.id)
    }

    /// The digest that stands for an input.
    pub(crate) fn digest(&self, canonical: &[u8]) -> Hash {
        let Some(key) = self.all.last() else { return Hash::default() };
        hash_of(hmac::sign(&key.hashing, canonical).as_ref())
    }

    /// Seals a text for one row or job.
    pub(crate) fn seal(
        &self,
        purpose: Purpose,
        of: &Dedup,
        text: &[u8],
    ) -> Result<Sealed<'static>, StoreError> {
        let failed = || StoreError::Refused("the system gives no random numbers to seal with".into());
        let key = self.all.last().ok_or(StoreError::NoKey("sealing"))?;
        let mut nonce = [0; aead::NONCE_LEN];
        rand::SystemRandom::new().fill(&mut nonce).map_err(|_| failed())?;
        let mut bytes = Vec::with_capacity(text.len().saturating_add(28));
        bytes.extend_from_slice(text);
        let nonce_of = aead::Nonce::assume_unique_for_key(nonce);
        let about = aead::Aad::from(associated(purpose, of));
        key.sealing.seal_in_place_append_tag(nonce_of, about, &mut bytes).map_err(|_| failed())?;
        bytes.extend_from_slice(&nonce);
        Ok(Sealed { key_id: key.id.to_string().into(), bytes: bytes.into() })
    }

    /// Opens a sealed text.
    pub(crate) fn open(
        &self,
        purpose: Purpose,
        of: &Dedup,
        sealed: &Sealed<'_>,
    ) -> Result<Zeroizing<Vec<u8>>, StoreError> {
        let Some(key) = self.all.iter().find(|key| *key.id == *sealed.key_id) else {
            let ids: Vec<&str> = self.ids().collect();
            let held = format!("{} holds {}", self.path.display(), ids.join(", "));
            return Err(StoreError::WrongKey { wanted: sealed.key_id.clone().into_owned(), held });
        };
        let tampered = || StoreError::Tampered { key_id: sealed.key_id.clone().into_owned() };
        let (text, nonce) = sealed.bytes.split_last_chunk().ok_or_else(tampered)?;
        let mut text = Zeroizing::new(text.to_vec());
        let nonce = aead::Nonce::assume_unique_for_key(*nonce);
        let about = aead::Aad::from(associated(purpose, of));
        let len = key.sealing.open_in_place(nonce, about, &mut text).map_err(|_| tampered())?.len();
        text.truncate(len);
        Ok(text)
    }

    /// The chain's key with this id.
    pub(crate) fn chain(&self, id: &str) -> Option<ChainKey> {
        let key = self.all.iter().find(|key| *key.id == *id)?;
        Some(ChainKey(Some((key.id.clone(), key.chain.clone()))))
    }

    /// The chain's newest key.
    pub(crate) fn newest_chain(&self) -> ChainKey {
        self.chain(self.newest()).unwrap_or(ChainKey::plain())
    }
}

impl ChainKey {
    /// Hashes without a key: whoever can write the database can make a whole new chain.
    pub fn plain() -> ChainKey {
        ChainKey(None)
    }

    /// The id of the key, if there is one.
    pub fn id(&self) -> Option<&str> {
        self.0.as_ref().map(|(id, _)| &**id)
    }

    /// The hash over these pieces.
    pub(crate) fn hash(&self, pieces: &[&[u8]]) -> Hash {
        match &self.0 {
            Some((_, key)) => {
                let mut context = hmac::Context::with_key(key);
                pieces.iter().for_each(|piece| context.update(piece));
                hash_of(context.sign().as_ref())
            }
            None => {
                let mut context = digest::Context::new(&digest::SHA256);
                pieces.iter().for_each(|piece| context.update(piece));
                hash_of(context.finish().as_ref())
            }
        }
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys")
            .field("path", &self.path)
            .field("ids", &self.ids().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ChainKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ChainKey").field(&self.id()).finish()
    }
}

fn hash_of(bytes: &[u8]) -> Hash {
    bytes.first_chunk().copied().unwrap_or_default()
}

fn associated(purpose: Purpose, of: &Dedup) -> [u8; 17] {
    let mut about = [0; 17];
    let (head, rest) = about.split_at_mut(1);
    head.fill(match purpose {
        Purpose::Detail => 1,
        Purpose::Job => 2,
        Purpose::Trace => 3,
    });
    rest.copy_from_slice(of);
    about
}

fn read_line(line: &str) -> Result<Key, String> {
    let mut words = line.split_whitespace();
    let (id, secret) = match (words.next(), words.next(), words.next()) {
        (Some(id), Some(secret), None) => (id, secret),
        _ => return Err("expected an id and 64 hex digits".into()),
    };
    let secret = Zeroizing::new(from_hex::<32>(secret).ok_or("the secret is not 64 hex digits")?);
    let key = derive(&secret).ok_or("the secret cannot be used")?;
    if *key.id != *id {
        return Err(format!("the secret does not belong to the id `{id}`; a digit was changed"));
    }
    Ok(key)
}

/// A line with a new secret.
fn new_line() -> Result<Zeroizing<String>, StoreError> {
    let refused = || StoreError::Refused("the system gives no random numbers for a key".into());
    let mut secret = Zeroizing::new([0; 32]);
    rand::SystemRandom::new().fill(secret.as_mut()).map_err(|_| refused())?;
    let key = derive(&secret).ok_or_else(refused)?;
    let digits = Zeroizing::new(hex(secret.as_ref()));
    Ok(Zeroizing::new(format!("{} {}", key.id, *digits)))
}

fn derive(secret: &[u8; 32]) -> Option<Key> {
    let root = hkdf::Salt::new(hkdf::HKDF_SHA256, b"hookgate store 1").extract(secret);
    let sealing = root.expand(&[b"seal"], &aead::AES_256_GCM).ok()?;
    let mut id = [0; 32];
    root.expand(&[b"id"], hkdf::HKDF_SHA256).ok()?.fill(&mut id).ok()?;
    let name = format!("k{}", hex(id.get(..4)?));
    id.zeroize();
    Some(Key {
        id: name.into(),
        sealing: aead::LessSafeKey::new(aead::UnboundKey::from(sealing)),
        hashing: hmac::Key::from(root.expand(&[b"input"], hmac::HMAC_SHA256).ok()?),
        chain: hmac::Key::from(root.expand(&[b"chain"], hmac::HMAC_SHA256).ok()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_file_is_made_once_and_is_its_owners() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/keys");
        let (first, made) = Keys::load_or_make(&path).unwrap();
        assert!(made);
        let (again, made) = Keys::load_or_make(&path).unwrap();
        assert!(!made);
        assert_eq!(first.newest(), again.newest());
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let secret = text.lines().last().unwrap().split(' ').nth(1).unwrap();
        assert!(!format!("{first:?}{:?}", first.newest_chain()).contains(secret.get(..8).unwrap()));
    }

    #[test]
    fn a_new_key_seals_and_the_old_one_still_opens() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        let (old, _) = Keys::load_or_make(&path).unwrap();
        let sealed = old.seal(Purpose::Detail, &[1; 16], b"secret").unwrap();
        let both = Keys::add(&path).unwrap();
        assert_eq!(both.ids().count(), 2);
        assert_ne!(both.newest(), old.newest());
        assert_eq!(**both.open(Purpose::Detail, &[1; 16], &sealed).unwrap(), *b"secret");
        let sealed = both.seal(Purpose::Detail, &[1; 16], b"secret").unwrap();
        let error = old.open(Purpose::Detail, &[1; 16], &sealed).unwrap_err().to_string();
        assert!(error.contains(both.newest()) && error.contains(old.newest()), "{error}");
    }

    #[test]
    fn a_sealed_text_opens_only_where_it_belongs() {
        let folder = tempfile::tempdir().unwrap();
        let (keys, _) = Keys::load_or_make(&folder.path().join("keys")).unwrap();
        let sealed = keys.seal(Purpose::Detail, &[1; 16], b"secret").unwrap();
        let mut bent = sealed.clone();
        bent.bytes.to_mut()[0] ^= 1;
        let short = Sealed { bytes: vec![1, 2].into(), ..sealed.clone() };
        assert!(keys.open(Purpose::Detail, &[1; 16], &sealed).is_ok());
        for (purpose, of, sealed) in [
            (Purpose::Detail, [2; 16], &sealed),
            (Purpose::Job, [1; 16], &sealed),
            (Purpose::Detail, [1; 16], &bent),
            (Purpose::Detail, [1; 16], &short),
        ] {
            let error = keys.open(purpose, &of, sealed).unwrap_err();
            assert!(matches!(error, StoreError::Tampered { .. }), "{error}");
        }
    }

    #[test]
    fn a_bad_key_file_says_where() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        let (zeros, short) = ("0".repeat(64), "0".repeat(63));
        for (text, words) in [
            (String::new(), "no key"),
            ("# x\nk1\n".into(), "line 2: expected an id and 64 hex digits"),
            (format!("k1 {short}\n"), "line 1: the secret is not 64 hex digits"),
            (format!("k1 {zeros}\n"), "line 1: the secret does not belong to the id `k1`"),
        ] {
            std::fs::write(&path, &text).unwrap();
            let error = Keys::load(&path).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
            assert!(!error.contains(&short), "{error}");
        }
    }
}
