//! Logging in, and the server itself.

use iggy::prelude::{
    Client, ClusterClient, IggyClient, IggyError, PersonalAccessTokenClient,
    PersonalAccessTokenExpiry, StreamClient, SystemClient, UserClient,
};

use crate::Bench;

/// A client that is connected but not logged in.
async fn stranger(bench: &Bench) -> IggyClient {
    let (address, ..) = bench.target.parts().unwrap();
    let client = IggyClient::builder()
        .with_tcp()
        .with_server_address(address.to_owned())
        .build()
        .unwrap();
    client.connect().await.unwrap();
    client
}

#[tokio::test]
async fn a_wrong_password_is_told_as_such() {
    let bench = Bench::start("password").await;
    let (_, username, _) = bench.target.parts().unwrap();
    let login = stranger(&bench).await.login_user(username, "wrong").await;
    assert!(
        matches!(login, Err(IggyError::InvalidCredentials)),
        "{login:?}"
    );
    bench.finish().await;
}

#[tokio::test]
async fn nothing_goes_without_a_login() {
    let bench = Bench::start("stranger").await;
    let streams = stranger(&bench).await.get_streams().await;
    assert!(
        matches!(streams, Err(IggyError::Unauthenticated)),
        "{streams:?}"
    );
    bench.finish().await;
}

#[tokio::test]
async fn a_token_logs_in_until_it_is_deleted() {
    let bench = Bench::start("token").await;
    let name = bench.name.as_str();
    let token = bench
        .client
        .create_personal_access_token(name, PersonalAccessTokenExpiry::NeverExpire)
        .await
        .unwrap();
    let listed = bench.client.get_personal_access_tokens().await.unwrap();
    assert!(listed.iter().any(|token| token.name == name));
    let client = stranger(&bench).await;
    client
        .login_with_personal_access_token(&token.token)
        .await
        .unwrap();
    client.get_streams().await.unwrap();
    bench
        .client
        .delete_personal_access_token(name)
        .await
        .unwrap();
    client.get_streams().await.unwrap();
    let late = stranger(&bench)
        .await
        .login_with_personal_access_token(&token.token)
        .await;
    assert!(
        matches!(late, Err(IggyError::InvalidPersonalAccessToken)),
        "{late:?}"
    );
    bench.finish().await;
}

#[tokio::test]
async fn the_server_answers_for_itself() {
    let bench = Bench::start("itself").await;
    let client = &bench.client;
    client.ping().await.unwrap();
    let me = client.get_me().await.unwrap();
    let clients = client.get_clients().await.unwrap();
    assert!(
        clients
            .iter()
            .any(|client| client.client_id == me.client_id)
    );
    let stats = client.get_stats().await.unwrap();
    assert!(stats.streams_count >= 1);
    let cluster = client.get_cluster_metadata().await.unwrap();
    assert!(!cluster.nodes.is_empty());
    let (_, username, _) = bench.target.parts().unwrap();
    let users = client.get_users().await.unwrap();
    assert!(users.iter().any(|user| user.username == username));
    bench.finish().await;
}

#[tokio::test]
async fn a_user_logs_in_with_the_password_that_it_has() {
    let bench = Bench::start("user").await;
    let name = format!("u{}", std::process::id());
    bench
        .client
        .create_user(&name, "secret1", iggy::prelude::UserStatus::Active, None)
        .await
        .unwrap();
    stranger(&bench)
        .await
        .login_user(&name, "secret1")
        .await
        .unwrap();
    let user = iggy::prelude::Identifier::named(&name).unwrap();
    bench
        .client
        .change_password(&user, "secret1", "secret2")
        .await
        .unwrap();
    let old = stranger(&bench).await.login_user(&name, "secret1").await;
    assert!(matches!(old, Err(IggyError::InvalidCredentials)), "{old:?}");
    stranger(&bench)
        .await
        .login_user(&name, "secret2")
        .await
        .unwrap();
    let session = stranger(&bench).await;
    session.login_user(&name, "secret2").await.unwrap();
    bench.client.delete_user(&user).await.unwrap();
    let late = session.get_streams().await;
    assert!(matches!(late, Err(IggyError::Unauthorized)), "{late:?}");
    bench.finish().await;
}
