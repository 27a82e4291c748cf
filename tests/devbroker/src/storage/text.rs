//! Wire types in the metadata.

/// Names as text.
pub mod name {
    use iggy_binary_protocol::WireName;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(name: &WireName, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(name.as_str())
    }

    pub fn deserialize<'a, D: Deserializer<'a>>(deserializer: D) -> Result<WireName, D::Error> {
        WireName::new(String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

/// Options as the bytes that they are on the wire.
pub mod options {
    use iggy_binary_protocol::WireOptions;
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    pub fn serialize<S: Serializer>(
        options: &WireOptions,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        options.as_bytes().serialize(serializer)
    }

    pub fn deserialize<'a, D: Deserializer<'a>>(deserializer: D) -> Result<WireOptions, D::Error> {
        let bytes = Vec::deserialize(deserializer)?;
        WireOptions::from_bytes(bytes.into()).map_err(D::Error::custom)
    }
}

/// Maps whose keys are no text, as pairs.
pub mod pairs {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<K: Serialize, V: Serialize, S: Serializer>(
        map: &BTreeMap<K, V>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(map)
    }

    pub fn deserialize<'a, K, V, D>(deserializer: D) -> Result<BTreeMap<K, V>, D::Error>
    where
        K: Deserialize<'a> + Ord,
        V: Deserialize<'a>,
        D: Deserializer<'a>,
    {
        let pairs = Vec::<(K, V)>::deserialize(deserializer)?;
        Ok(pairs.into_iter().collect())
    }
}
