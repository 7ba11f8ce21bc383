"""Recipe: recurrent PPO with a cascaded-LSTM policy."""
