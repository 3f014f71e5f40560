//! Anonymous sessions: tokens that any server can check by itself, and the ids derived from them.

use aiseki_lobby::{Millis, SessionId};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};

/// A session that is not renewed ends after thirty days.
pub const SESSION_LIFETIME: Millis = 30 * 24 * 3_600_000;

/// Bytes of the secret id in a token.
const ID_BYTES: usize = 16;
/// Bytes of a token's payload: the id, and the milliseconds of its issue.
const PAYLOAD_BYTES: usize = ID_BYTES + 8;

/// Issues and checks session tokens.
///
/// A token is `v1.KEY.PAYLOAD.MAC`: the number of the key, then in base64url the random id with the
/// time of issue, and an HMAC-SHA-256 over all before it. Whoever has no key cannot make one, and
/// the id that is stored and logged ([`SessionId`]) is a hash that does not lead back to a token.
pub struct Sessions {
    keys: Vec<SessionKey>,
}

/// A secret by which tokens are signed.
#[derive(Clone)]
pub struct SessionKey {
    /// The number that tokens name it by.
    pub number: u32,
    /// The secret.
    pub secret: [u8; 32],
}

/// A token as it is handed out.
#[derive(Clone, Debug)]
pub struct IssuedToken {
    /// The text. It is a secret of the person.
    pub token: String,
    /// When it stops being accepted.
    pub expires_at: Millis,
}

/// What a valid token proves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerifiedToken {
    /// Who brings it.
    pub session: SessionId,
    secret_id: [u8; ID_BYTES],
    issued_at: Millis,
}

impl VerifiedToken {
    /// When it stops being accepted.
    pub fn expires_at(&self) -> Millis {
        self.issued_at.saturating_add(SESSION_LIFETIME)
    }
}

/// The token is malformed, forged or too old. Which of these is nobody's business.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the session token is not valid")]
pub struct BadToken;

impl Sessions {
    /// Tokens are signed by the last of `keys` and accepted from all of them.
    ///
    /// # Panics
    ///
    /// When there is no key: the store makes one before anybody can ask.
    pub fn new(keys: Vec<SessionKey>) -> Self {
        assert!(!keys.is_empty(), "a store has at least one session key");
        Self { keys }
    }

    /// A new person.
    pub fn issue(&self, now: Millis) -> IssuedToken {
        let mut id = [0; ID_BYTES];
        getrandom::fill(&mut id).expect("the operating system gives random bytes");
        self.token(id, now)
    }

    /// The same person, for another [`SESSION_LIFETIME`].
    pub fn renew(&self, token: &VerifiedToken, now: Millis) -> IssuedToken {
        self.token(token.secret_id, now)
    }

    /// Who brings this token.
    pub fn verify(&self, token: &str, now: Millis) -> Result<VerifiedToken, BadToken> {
        // The longest token there is has 11 + 32 + 43 characters; anything longer is not read.
        if token.len() > 128 {
            return Err(BadToken);
        }
        let (signed, mac) = token.rsplit_once('.').ok_or(BadToken)?;
        let mut parts = signed.split('.');
        let (version, number, payload) = (parts.next(), parts.next(), parts.next());
        if version != Some("v1") || parts.next().is_some() {
            return Err(BadToken);
        }
        let number: u32 = number.and_then(|number| number.parse().ok()).ok_or(BadToken)?;
        let key = self.keys.iter().find(|key| key.number == number).ok_or(BadToken)?;
        let mac = URL_SAFE_NO_PAD.decode(mac).map_err(|_| BadToken)?;
        // Compared in constant time by the library.
        keyed(key, signed).verify_slice(&mac).map_err(|_| BadToken)?;
        let payload = URL_SAFE_NO_PAD.decode(payload.ok_or(BadToken)?).map_err(|_| BadToken)?;
        let payload: [u8; PAYLOAD_BYTES] = payload.try_into().map_err(|_| BadToken)?;
        let (id, issued_at) = payload.split_at(ID_BYTES);
        let secret_id: [u8; ID_BYTES] = id.try_into().map_err(|_| BadToken)?;
        let issued_at = Millis::from_be_bytes(issued_at.try_into().map_err(|_| BadToken)?);
        if now >= issued_at.saturating_add(SESSION_LIFETIME) {
            return Err(BadToken);
        }
        Ok(VerifiedToken { session: derive(&secret_id), secret_id, issued_at })
    }

    fn token(&self, id: [u8; ID_BYTES], now: Millis) -> IssuedToken {
        let key = self.keys.last().expect("checked when made");
        let mut payload = [0; PAYLOAD_BYTES];
        payload[..ID_BYTES].copy_from_slice(&id);
        payload[ID_BYTES..].copy_from_slice(&now.to_be_bytes());
        let signed = format!("v1.{}.{}", key.number, URL_SAFE_NO_PAD.encode(payload));
        let mac = URL_SAFE_NO_PAD.encode(keyed(key, &signed).finalize().into_bytes());
        IssuedToken {
            token: format!("{signed}.{mac}"),
            expires_at: now.saturating_add(SESSION_LIFETIME),
        }
    }
}

impl SessionKey {
    /// A new secret.
    pub fn generate(number: u32) -> Self {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).expect("the operating system gives random bytes");
        Self { number, secret }
    }
}

fn keyed(key: &SessionKey, signed: &str) -> Hmac<Sha256> {
    let mut mac =
        Hmac::<Sha256>::new_from_slice(&key.secret).expect("HMAC takes a key of any length");
    mac.update(b"aiseki session token\0");
    mac.update(signed.as_bytes());
    mac
}

/// The id by which a person is stored and logged. The secret id has 128 random bits, so a plain hash
/// cannot be searched backwards, and it stays the same when the signing key changes.
fn derive(secret_id: &[u8; ID_BYTES]) -> SessionId {
    let mut hash = Sha256::new();
    hash.update(b"aiseki session id\0");
    hash.update(secret_id);
    let mut id = [0; 16];
    id.copy_from_slice(&hash.finalize()[..16]);
    SessionId(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Millis = 1_800_000_000_000;

    fn sessions() -> Sessions {
        Sessions::new(vec![SessionKey { number: 1, secret: [7; 32] }])
    }

    #[test]
    fn a_token_is_accepted_for_thirty_days_and_renewed_for_the_same_person() {
        let sessions = sessions();
        let first = sessions.issue(NOW);
        let verified = sessions.verify(&first.token, NOW).unwrap();
        let late = NOW + SESSION_LIFETIME - 1;
        assert_eq!(sessions.verify(&first.token, late), Ok(verified));
        assert_eq!(sessions.verify(&first.token, late + 1), Err(BadToken));

        let renewed = sessions.renew(&verified, late);
        assert_eq!(renewed.expires_at, late + SESSION_LIFETIME);
        let again = sessions.verify(&renewed.token, late + 1).unwrap();
        assert_eq!(again.session, verified.session);
    }

    #[test]
    fn every_changed_character_makes_a_token_invalid() {
        let sessions = sessions();
        let token = sessions.issue(NOW).token;
        for i in 0..token.len() {
            for other in ["A", "b", "7", ".", "-", "="] {
                let mut forged = token.clone();
                forged.replace_range(i..=i, other);
                if forged != token {
                    assert_eq!(sessions.verify(&forged, NOW), Err(BadToken), "{forged}");
                }
            }
        }
        for forged in ["", ".", "...", "v1", "v1.1..", &format!("{token}.x"), &token[1..]] {
            assert_eq!(sessions.verify(forged, NOW), Err(BadToken), "{forged}");
        }
    }

    #[test]
    fn tokens_of_an_older_key_are_accepted_and_those_of_another_store_are_not() {
        let old = sessions();
        let token = old.issue(NOW).token;
        let session = old.verify(&token, NOW).unwrap().session;
        let rotated = Sessions::new(vec![
            SessionKey { number: 1, secret: [7; 32] },
            SessionKey { number: 2, secret: [8; 32] },
        ]);
        let kept = rotated.verify(&token, NOW).unwrap();
        assert_eq!(kept.session, session);
        let renewed = rotated.renew(&kept, NOW).token;
        assert!(renewed.starts_with("v1.2."));
        assert_eq!(rotated.verify(&renewed, NOW).unwrap().session, session);
        let other = Sessions::new(vec![SessionKey::generate(1)]);
        assert_eq!(other.verify(&token, NOW), Err(BadToken));
    }

    #[test]
    fn the_stored_id_is_not_part_of_the_token() {
        let sessions = sessions();
        let token = sessions.issue(NOW).token;
        let verified = sessions.verify(&token, NOW).unwrap();
        assert_ne!(verified.session.0, verified.secret_id);
        assert!(!token.contains(&verified.session.to_string()));
    }
}
